package pages

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard/audit"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/forms"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
)

// Limits of what a form does.
const (
	// changeTimeout bounds it. A server gives an answer writeTimeout, which is longer.
	changeTimeout = 25 * time.Second
	// stepsTimeout is how long one form changes many tasks, step by step; another form goes on behind that.
	stepsTimeout = 15 * time.Second
	// byMax is how long the name of a user may be in the API, bytes.
	byMax = 128
	// sampleMax is how many of the tasks a preview shows.
	sampleMax = 10
)

// Names of inputs that all forms have.
const (
	formInput  = "form"
	typedInput = "typed"
)

// preview is what a page with a form shows: what will be changed.
type preview struct {
	// Text says what a confirmation does.
	Text string
	// Refused says why it cannot be done now; then there is no form.
	Refused string
	Facts   []fact
	// Sample are the first tasks that it is about; Path is that of their domain's tasks.
	Sample []*yardv1.Task
	// Kept are inputs that the user does not see, Inputs are the others.
	Kept   []fact
	Inputs []input

	// Sent is what became of the form that the user sent last from the page; nil = there is none. The page that is open is another form.
	Sent *forms.Outcome
	// Form names the form. Path is where it is sent to, Back is the page behind it. Typed is what the user has to type; "" = nothing.
	Form, Path, Back, Typed string
}

// input is an input of a form.
type input struct {
	Name, Label string
	// Type is text, number, checkbox or choice. Value is what is there at first; a checkbox is checked unless it is "".
	Type, Value string
	// Options are those of a choice. The user has to take one.
	Options []string
	// Least and Most bound a number.
	Least, Most int64
}

// done is what a form has done.
type done struct {
	Text string
	// Path is the page that shows the effect. Default: the one above that of the form.
	Path string
	// Further is the query of the form for what is left; "" = nothing is left.
	Further url.Values
}

// action is a page with a form. A GET shows a preview, a POST does it.
func action(path, title string, role login.Role, show func(*Request) (*preview, error), act func(*Request) (done, error)) page {
	return page{path: path, title: title, role: role, file: "action", act: act, show: func(r *Request) (any, error) {
		body, err := show(r)
		if err != nil {
			return nil, err
		}
		body.Form, body.Path = ids.NewRequestID(r.Now).String(), r.URL.EscapedPath()
		body.Back = parent(body.Path)
		if sent, ok := r.pages.forms.Last(r.Who.Name, r.URL.Path); ok {
			body.Sent = &sent
		}
		if r.page.typed != "" {
			body.Typed = r.PathValue(r.page.typed)
		}
		return body, nil
	}}
}

// confirmedBy is the action with a value of its path that the user has to type, since it cannot be undone.
func (p page) confirmedBy(value string) page {
	p.typed = value
	return p
}

// offeredIf is the action, which the page above it offers only for some things.
func (p page) offeredIf(is func(frame) bool) page {
	p.offered = is
	return p
}

// parent is the path above a path.
func parent(path string) string { return path[:strings.LastIndex(path, "/")] }

// change does what a form is for, once, and sends the browser to the page that shows the effect.
func (p *Pages) change(r *Request, w http.ResponseWriter, one *page) {
	if err := r.ParseForm(); err != nil {
		p.fail(r, w, fault.New(fault.InvalidArgument, "the form cannot be read: %v", err))
		return
	}
	if want := r.PathValue(one.typed); one.typed != "" && r.PostForm.Get(typedInput) != want {
		p.fail(r, w, fault.At(fault.InvalidArgument, "/"+typedInput, "type %s, since this cannot be undone", want))
		return
	}
	// It goes on without the browser, whose second click ends the request of the first one.
	ctx, cancel := context.WithTimeout(audit.By(context.WithoutCancel(r.Context()), r.by()), changeTimeout)
	defer cancel()
	r.Request = r.WithContext(ctx)
	id := r.PostForm.Get(formInput)
	outcome, err := p.forms.Once(ctx, r.Who.Name, r.URL.Path, id, r.PostForm.Encode(), r.Now, func() forms.Outcome { return p.act(r, one) })
	if err != nil {
		p.fail(r, w, err)
		return
	}
	http.Redirect(w, r.Request, outcome.Path+"?"+url.Values{formInput: {id}}.Encode(), http.StatusSeeOther)
}

// act does what a form is for, and logs it.
func (p *Pages) act(r *Request, one *page) forms.Outcome {
	did, err := one.act(r)
	outcome := forms.Outcome{Text: cmp.Or(did.Text, "Nothing matched."), At: time.Now(), Path: cmp.Or(did.Path, parent(r.URL.EscapedPath()))}
	if err != nil {
		e := fault.From(err)
		outcome.Text, outcome.Code = strings.TrimSpace(did.Text+" "+e.Message), e.Code
		outcome.Open = e.Code == fault.Unknown || e.Code.Retryable()
	}
	if did.Further != nil {
		outcome.Further = r.URL.EscapedPath() + "?" + did.Further.Encode()
	}
	p.Log.InfoContext(r.Context(), "a user of the console sent a form", "user", r.Who.Name, "page", r.URL.Path, "code", outcome.Code, "outcome", outcome.Text)
	return outcome
}

// actions are links to the forms that a page offers to the user, by what is on it.
func (p *Pages) actions(r *Request, f frame) (all []link) {
	for i := range p.all {
		one := &p.all[i]
		if one.act == nil || cmp.Or(one.of, parent(one.path)) != r.page.path || r.Who.Role < one.role || one.wide && !r.Who.SeesAll() {
			continue
		}
		if one.offered == nil || one.offered(f) {
			all = append(all, link{Title: one.title, Path: r.URL.EscapedPath() + one.path[strings.LastIndex(one.path, "/"):]})
		}
	}
	return all
}

// input is what a form, or the link to one, says. A form is in the body of its request.
func (r *Request) input(name string) string {
	if r.Method == http.MethodPost {
		return r.PostForm.Get(name)
	}
	return r.URL.Query().Get(name)
}

// number is an input that is a number; "" is 0.
func (r *Request) number(of input) (int64, error) {
	text := r.input(of.Name)
	n, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
	if err != nil || text != "" && (n < of.Least || n > of.Most) {
		return 0, fault.At(fault.InvalidArgument, "/"+of.Name, "want a number from %d to %d, not %q", of.Least, of.Most, text)
	}
	return n, nil
}

// by is the user's name as the API takes it.
func (r *Request) by() string {
	return strings.ToValidUTF8(r.Who.Name[:min(len(r.Who.Name), byMax)], "")
}

// Inputs that several forms have.
var (
	reasonInput = input{Name: "reason", Label: "Reason, for people", Type: "text"}
	rateInput   = input{Name: "rate", Label: "Tasks a second, at most", Type: "number", Value: "200", Least: 1, Most: 1000}
)
