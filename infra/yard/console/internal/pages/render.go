package pages

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/forms"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/words"
)

//go:embed templates
var sources embed.FS

// errorFile is the template of all errors.
const errorFile = "error"

func parse(all []page) (templates, error) {
	parsed := templates{}
	for _, one := range append(all, page{file: errorFile}) {
		t, err := template.New("layout.html").Funcs(words.Functions).Funcs(template.FuncMap{"row": row}).ParseFS(sources, "templates/layout.html", "templates/parts.html", "templates/"+one.file+".html")
		if err != nil {
			return nil, err
		}
		parsed[one.file] = t
	}
	return parsed, nil
}

// frame is what a template gets.
type frame struct {
	// Title, Thing and Page are of the page: its heading, the name of what it is about, and its path.
	Title, Thing, Page string
	// Nonce allows the page's scripts.
	Nonce string
	Who   login.Identity
	// Domain is that of the page, Menu and DomainMenu the navigation.
	Domain           string
	Menu, DomainMenu []link
	// Actions are the forms that the page offers. Outcome is what became of the form that led to the page; nil = none did.
	Actions    []link
	Outcome    *forms.Outcome
	Now        time.Time
	Body, Live any
	// Stream is where new versions of Live come from; "" = nowhere.
	Stream string
	// Chart is the numbers of the last hour, as JSON for the script.
	Chart string
	asset func(string) string
}

// Asset is where a file of package assets is.
func (f frame) Asset(name string) string { return f.asset(name) }

// Operates reports whether the user may change tasks.
func (f frame) Operates() bool { return f.Who.Role >= login.Operator }

type link struct {
	Title, Path string
	Current     bool
}

// write writes a page.
func (p *Pages) write(r *Request, w http.ResponseWriter, status int, f frame) {
	file := r.page.file
	if status != http.StatusOK || file == "" {
		file = errorFile
	}
	f.Title, f.Page, f.Nonce, f.Who, f.Domain, f.Now, f.asset = cmp.Or(f.Title, r.page.title), r.page.path, Nonce(r.Request), r.Who, r.Domain, r.Now, p.Assets.Path
	if last := lastValue(r.page.path); f.Thing == "" && last != "" && last != "domain" {
		f.Thing = r.PathValue(last)
	}
	f.Menu, f.DomainMenu = p.menus(r)
	if outcome, ok := p.forms.Outcome(r.Who.Name, r.URL.Query().Get(formInput)); ok {
		f.Outcome = &outcome
	}
	text, err := p.templates.execute(file, "layout.html", f)
	if err != nil {
		p.Log.ErrorContext(r.Context(), "a page of the console could not be written", "error", err)
		http.Error(w, "the page could not be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a browser that has left needs no page
}

// execute runs a block of a page's template. Signs that change the direction of text, or control a terminal, come from tenants, and are replaced.
func (t templates) execute(file, block string, data any) ([]byte, error) {
	var text bytes.Buffer
	if err := t[file].ExecuteTemplate(&text, block, data); err != nil {
		return nil, err
	}
	return bytes.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
			return unicode.ReplacementChar
		}
		return c
	}, text.Bytes()), nil
}

// lastValue is the name of the last value in a pattern: "tasklist" of /domains/{domain}/tasklists/{tasklist}/pause.
func lastValue(pattern string) string {
	name, _, _ := strings.Cut(pattern[strings.LastIndex(pattern, "{")+1:], "}")
	return strings.TrimSuffix(name, "...")
}

// menus are the pages that the user may open, of the cluster and of the domain.
func (p *Pages) menus(r *Request) (cluster, domain []link) {
	for _, one := range p.all {
		path, ofDomain := strings.CutPrefix(one.path, domainPath)
		switch {
		case one.menu == "" || r.Who.Role < one.role:
		case ofDomain && r.Domain != "":
			domain = append(domain, link{one.menu, "/domains/" + r.Domain + path, one.path == r.page.path})
		case !ofDomain && (one.everyone || r.Who.SeesAll()):
			cluster = append(cluster, link{one.menu, strings.TrimSuffix(one.path, "{$}"), one.path == r.page.path})
		}
	}
	return cluster, domain
}

// statuses are the statuses of HTTP for codes of errors; others are 500.
var statuses = map[fault.Code]int{
	fault.InvalidArgument: http.StatusBadRequest, fault.InvalidTime: http.StatusBadRequest, fault.NotFound: http.StatusNotFound,
	fault.AlreadyExists: http.StatusConflict, fault.Stale: http.StatusConflict, fault.FailedPrecondition: http.StatusConflict,
	fault.ResourceExhausted: http.StatusTooManyRequests, fault.Unavailable: http.StatusServiceUnavailable, fault.Unknown: http.StatusServiceUnavailable,
	fault.PermissionDenied: http.StatusForbidden, fault.Unimplemented: http.StatusNotImplemented,
}

// fail answers with an error of the engine, or of the console. The call that failed may be the first one that NATS refuses.
func (p *Pages) fail(r *Request, w http.ResponseWriter, err error) {
	if r.Who.Role != 0 && r.revoked() {
		p.refuse(r, w, errRevoked)
		return
	}
	f := fault.From(err)
	p.write(r, w, cmp.Or(statuses[f.Code], http.StatusInternalServerError), frame{Title: "Error", Body: f})
}

// refuse answers a request whose sender is not let in: a page leads to the login, if there is one.
func (p *Pages) refuse(r *Request, w http.ResponseWriter, err error) {
	refused := &login.Refused{Status: http.StatusForbidden, Reason: err.Error()}
	errors.As(err, &refused)
	if refused.Login != "" && r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, livePrefix+"/") {
		http.Redirect(w, r.Request, refused.Login, http.StatusSeeOther)
		return
	}
	refused.Write(w)
}
