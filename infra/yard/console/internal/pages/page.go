// Package pages has the pages of the console: one table of them, and for each one what it asks the engine and its template.
//
// Owns: routes, the layout, the streams of pages that follow numbers, the forms that change something, and what an error looks like. Never does: call anything but
// the public API through the SDK, list more than one page of it, or change anything for a GET; a page makes a number of calls that does not grow with the backlog.
// On failure: a page of an error shows its code and text. A form that fails shows them on the page that it leads to.
package pages

import (
	"html/template"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/access"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/assets"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/forms"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
)

// domainPath is the beginning of the paths of all pages of a domain.
const domainPath = "/domains/{domain}"

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
	// act is what a POST of the page's form does; nil = the page has no form, and changes nothing. typed is the value of the path that the user has to type.
	act   func(*Request) (done, error)
	typed string
	// of is the path of the page that offers the form. Default: the one above. offered reports whether it does, by what is on it; nil = always.
	of      string
	offered func(frame) bool
	// wide: the page of a domain is only for users who may see all domains.
	wide bool
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
	forms     *forms.Forms

	mu sync.Mutex
	// open is how many pages and streams each user has open.
	open map[string]int
}

// openMax is how many pages and streams a user may have open at once, so that one leaves room for the others.
const openMax = 64

// enter counts a page of a user in, unless there are too many. leave counts it out.
func (p *Pages) enter(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[name] >= openMax {
		return false
	}
	p.open[name]++
	return true
}

func (p *Pages) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[name]--; p.open[name] == 0 {
		delete(p.open, name)
	}
}

// templates are the layout with each page, by the name of the page's file.
type templates map[string]*template.Template

// redirect is the result of a page that only sends the browser to another one, by its path.
type redirect string

// Error implements error.
func (r redirect) Error() string { return "see " + string(r) }

// Request is a request of a user for a page.
type Request struct {
	*http.Request
	// Who: the user that sends it.
	Who login.Identity
	// Domain is that of the page; "" = none.
	Domain string
	// Now is when it came.
	Now   time.Time
	pages *Pages
	page  *page
	way   login.Way
}

// Client is a client of the page's domain, with the rights of the page.
func (r *Request) Client() (*yard.Client, error) { return r.pages.Access.Client(r.page.role, r.Domain) }

// Admin is a client for calls about the cluster, with the rights of the page.
func (r *Request) Admin() (*yard.Admin, error) { return r.pages.Access.Admin(r.page.role) }

// listed is a page of a list. Next is the path of the next page; "" = there is none.
type listed[T any] struct {
	Items []T
	Next  string
}

// next is the page's own path with another cursor; "" if there is no further page.
func (r *Request) next(cursor string) string {
	if cursor == "" {
		return ""
	}
	query := r.URL.Query()
	query.Set("cursor", cursor)
	return r.URL.Path + "?" + query.Encode()
}

// row is a line of a list of facts.
func row(name string, value any) fact { return fact{name, value} }

// fact is a name with a value, for a template.
type fact struct {
	Name  string
	Value any
}
