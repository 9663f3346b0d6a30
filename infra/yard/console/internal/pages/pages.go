// Package pages has the pages of the console: one table of them, and for each one what it asks the engine and its template.
//
// Owns: routes, the layout, the streams of pages that follow numbers, and what an error looks like. Never does: call anything but the public API through the
// SDK, or list more than one page of it; a page makes a number of calls that does not grow with the backlog. On failure: a page of an error shows its code and text.
package pages

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/access"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/assets"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
)

// pageTimeout bounds all calls of a page.
const pageTimeout = 10 * time.Second

// page is one page of the console.
type page struct {
	// path is a pattern of http.ServeMux. A page below /domains/{domain} is of that domain, and 404 for users who may not see it. Other pages are of the cluster.
	path string
	// title is the heading, and what the tab says. For a page of one thing, its name comes behind it.
	title string
	// menu is what the navigation says; "" = the page is not in it.
	menu string
	// role is the least that may open the page.
	role login.Role
	// everyone: a page of the cluster is also for users who may see only some domains.
	everyone bool
	// show asks the engine for what is on the page. Its result is .Body of the template, whose file is named after the page.
	show func(*Request) (any, error)
	file string
	// follow is the topic of a page that changes by itself; nil = none. live makes .Live of the template's block "live" of a sample.
	follow func(*Request) sampler.Topic
	live   func(*Request, sampler.Sample) any
}

// Deps are what the pages need.
type Deps struct {
	Access  *access.Access
	Sampler *sampler.Sampler
	Assets  *assets.Files
	Log     *slog.Logger
}

// Pages serves the pages.
type Pages struct {
	Deps
	all       []page
	templates templates
}

// New parses the templates.
func New(deps Deps) (*Pages, error) {
	p := &Pages{Deps: deps, all: all()}
	var err error
	p.templates, err = parse(p.all)
	return p, err
}

// Handler serves the pages to users whom way lets in.
func (p *Pages) Handler(way login.Way) http.Handler {
	mux := http.NewServeMux()
	for i := range p.all {
		one := &p.all[i]
		mux.Handle("GET "+one.path, p.guard(way, one, p.serve))
		if one.follow != nil {
			mux.Handle("GET /live"+one.path, p.guard(way, one, p.stream))
		}
	}
	mux.Handle("/", p.guard(way, &page{everyone: true, role: login.Viewer}, func(r *Request, w http.ResponseWriter, _ *page) {
		p.fail(r, w, fault.New(fault.NotFound, "there is no such page"))
	}))
	return mux
}

// redirect is the result of a page that only sends the browser to another one, by its path.
type redirect string

// Error implements error.
func (r redirect) Error() string { return "see " + string(r) }

// Request is a request of a user for a page.
type Request struct {
	*http.Request
	// Who sends it.
	Who login.Identity
	// Domain is that of the page; "" = none.
	Domain string
	// Now is when it came.
	Now   time.Time
	pages *Pages
	page  *page
}

// Client is a client of the page's domain, with the rights of the page.
func (r *Request) Client() (*yard.Client, error) { return r.pages.Access.Client(r.page.role, r.Domain) }

// Admin is a client for calls about the cluster, with the rights of the page.
func (r *Request) Admin() (*yard.Admin, error) { return r.pages.Access.Admin(r.page.role) }

// guard lets a request through whose user may open the page. A page that a user may not see does not exist for that user.
func (p *Pages) guard(way login.Way, one *page, do func(*Request, http.ResponseWriter, *page)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, raw *http.Request) {
		who, err := way.Identify(raw)
		r := &Request{Request: raw, Who: who, Domain: raw.PathValue("domain"), Now: time.Now(), pages: p, page: one}
		switch {
		case err != nil:
			p.refuse(r, w, err)
		case r.Domain != "" && (ids.CheckName(r.Domain) != nil || !who.Sees(r.Domain)), r.Domain == "" && !one.everyone && !who.SeesAll():
			r.Domain = ""
			p.fail(r, w, fault.New(fault.NotFound, "there is no such page"))
		case who.Role < one.role:
			p.fail(r, w, fault.New(fault.PermissionDenied, "this page needs the role %s", one.role))
		default:
			do(r, w, one)
		}
	})
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
		sample := p.Sampler.Last(ctx, topic)
		if sample.Value == nil {
			p.fail(r, w, sample.Err)
			return
		}
		content.Live, content.Stream = one.live(r, sample), "/live"+r.URL.EscapedPath()
		content.Chart = chartOf(p.Sampler.Hour(topic))
	}
	p.write(r, w, http.StatusOK, content)
}
