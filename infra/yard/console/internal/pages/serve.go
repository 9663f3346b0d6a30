package pages

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
)

// livePrefix is the beginning of the paths of streams.
const livePrefix = "/live"

// pageTimeout bounds all calls of a page.
const pageTimeout = 10 * time.Second

// Handler serves the pages to the users that way lets in.
func (p *Pages) Handler(way login.Way) http.Handler {
	mux := http.NewServeMux()
	for i := range p.all {
		one := &p.all[i]
		mux.Handle("GET "+one.path, p.guard(way, one, p.serve))
		if one.act != nil {
			mux.Handle("POST "+one.path, p.guard(way, one, p.change))
		}
		if one.follow != nil {
			mux.Handle("GET "+livePrefix+one.path, p.guard(way, one, p.stream))
		}
	}
	mux.Handle("/", p.guard(way, &page{everyone: true, role: login.Viewer}, func(r *Request, w http.ResponseWriter, _ *page) {
		p.fail(r, w, fault.New(fault.NotFound, "there is no such page"))
	}))
	return mux
}

// guard lets a request through whose user may open the page. A page that a user may not see does not exist for that user.
func (p *Pages) guard(way login.Way, one *page, do func(*Request, http.ResponseWriter, *page)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, raw *http.Request) {
		who, err := way.Identify(raw)
		r := &Request{Request: raw, Who: who, Domain: raw.PathValue("domain"), Now: time.Now(), pages: p, page: one, way: way}
		switch {
		case err != nil:
			p.refuse(r, w, err)
		case r.Domain != "" && (ids.CheckName(r.Domain) != nil || !who.Sees(r.Domain)), (r.Domain == "" && !one.everyone || one.wide) && !who.SeesAll():
			r.Domain = ""
			p.fail(r, w, fault.New(fault.NotFound, "there is no such page"))
		case who.Role < one.role:
			p.fail(r, w, fault.New(fault.PermissionDenied, "this page needs the role %s", one.role))
		case r.revoked():
			p.refuse(r, w, errRevoked)
		case !p.enter(who.Name):
			p.fail(r, w, fault.New(fault.ResourceExhausted, "you have %d pages open, which is the most", openMax))
		default:
			defer p.leave(who.Name)
			do(r, w, one)
		}
	})
}

// errRevoked is the error of a user whose login to NATS was revoked. It names no page to log in: a provider would log the user in again at once.
var errRevoked = &login.Refused{Status: http.StatusUnauthorized, Reason: "NATS does not take a login that your role needs. Your session has ended."}

// revoked reports whether NATS refuses a login that the user needs, for the cluster, for the page's domain, or for one of the user's own. The session then ends.
func (r *Request) revoked() bool {
	refused := func(domain string) bool { return r.pages.Access.Refused(r.Who.Role, domain) }
	if !refused("") && (r.Domain == "" || !refused(r.Domain)) && !slices.ContainsFunc(r.Who.Domains, func(domain string) bool { return domain != login.AllDomains && refused(domain) }) {
		return false
	}
	if way, ok := r.way.(login.Ending); ok {
		way.End(r.Request)
	}
	return true
}

// serve answers with a page.
func (p *Pages) serve(r *Request, w http.ResponseWriter, one *page) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	r.Request = r.WithContext(ctx)
	body, err := one.show(r)
	var to redirect
	if errors.As(err, &to) {
		http.Redirect(w, r.Request, string(to), http.StatusSeeOther)
		return
	}
	if err != nil {
		p.fail(r, w, err)
		return
	}
	content := frame{Body: body}
	if one.follow != nil {
		topic := one.follow(r)
		sample := p.Sampler.Last(topic)
		if sample.Value == nil {
			p.fail(r, w, sample.Err)
			return
		}
		content.Live, content.Stream = one.live(r, sample), livePrefix+r.URL.EscapedPath()
		content.Chart = chartOf(p.hour(r, topic))
	}
	content.Actions = p.actions(r, content)
	p.write(r, w, http.StatusOK, content)
}
