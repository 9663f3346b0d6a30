package pages

import (
	"fmt"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/words"
)

// minutesInput is how long a pause or a drain lasts.
var minutesInput = input{Name: "minutes", Label: "Minutes until it ends by itself (empty: not before it is resumed)", Type: "number", Least: 1, Most: 366 * 24 * 60}

// stoppable is what can be paused and drained: the tasks of a domain, of a tasklist, of a type or of a group.
type stoppable struct {
	// path is that of its page, noun is what it is called.
	path, noun string
	// role is the least that may do it. wide: only for users who may see all domains.
	role login.Role
	wide bool
	// state is what it is now, with facts for people.
	state  func(*Request) (pause, drain *yardv1.Pause, facts []fact, err error)
	stop   func(r *Request, drain bool, o yard.PauseOptions) error
	resume func(r *Request, drain bool) error
	// shown is what its page shows.
	shown func(frame) (pause, drain *yardv1.Pause)
}

// stopActions are the forms that pause, drain and resume.
func stopActions() (all []page) {
	for _, s := range []stoppable{
		{path: domainPath, noun: "domain", role: login.Admin, wide: true, state: domainState, stop: stopDomain, resume: resumeDomain, shown: domainShown},
		{path: domainPath + "/tasklists/{tasklist}", noun: "tasklist", role: login.Operator, state: tasklistState, stop: stopPart(tasklistPart), resume: resumePart(tasklistPart), shown: tasklistShown},
		{path: domainPath + "/types/{type}", noun: "type", role: login.Operator, state: typeState, stop: stopPart(typePart), resume: resumePart(typePart), shown: bodyShown},
		{path: domainPath + "/groups/{group}", noun: "group", role: login.Operator, state: groupState, stop: stopPart(groupPart), resume: resumePart(groupPart), shown: bodyShown},
	} {
		for _, one := range []page{
			action(s.path+"/pause", "Pause the "+s.noun, s.role, s.preview(false), s.halt(false)),
			action(s.path+"/resume", "End the pause", s.role, s.previewResume(false), s.goOn(false)).offeredIf(func(f frame) bool { pause, _ := s.shown(f); return pause != nil }),
			action(s.path+"/drain", "Drain the "+s.noun, s.role, s.preview(true), s.halt(true)),
			action(s.path+"/undrain", "End the drain", s.role, s.previewResume(true), s.goOn(true)).offeredIf(func(f frame) bool { _, drain := s.shown(f); return drain != nil }),
		} {
			one.wide = s.wide
			all = append(all, one)
		}
	}
	return all
}

func domainShown(f frame) (pause, drain *yardv1.Pause) {
	d := f.Body.(domainBody)
	return d.Pause.Wire(), d.Drain.Wire()
}

func tasklistShown(f frame) (pause, drain *yardv1.Pause) {
	d := f.Live.(tasklistLive)
	return d.Pause, d.Drain
}

// bodyShown is for a page whose body is the answer of the engine: that of a type or of a group.
func bodyShown(f frame) (pause, drain *yardv1.Pause) {
	return f.Body.(interface{ GetPause() *yardv1.Pause }).GetPause(), f.Body.(interface{ GetDrain() *yardv1.Pause }).GetDrain()
}

// preview is that of a pause or a drain.
func (s stoppable) preview(drain bool) func(*Request) (*preview, error) {
	return func(r *Request) (*preview, error) {
		pause, drained, facts, err := s.state(r)
		if err != nil {
			return nil, err
		}
		text, now := fmt.Sprintf("No task of the %s starts until the pause ends. Attempts that run go on, and tasks are accepted.", s.noun), pause
		if drain {
			text, now = fmt.Sprintf("New tasks of the %s are refused until the drain ends. Tasks that are accepted go on.", s.noun), drained
		}
		if now != nil {
			text += " This replaces the one that there is."
		}
		return &preview{Text: text, Facts: append(facts, stopFacts(pause, drained)...), Inputs: []input{reasonInput, minutesInput}, Kept: sinceOf(now)}, nil
	}
}

// sinceInput says which pause or drain a form showed, by when it began; 0 = there was none.
const sinceInput = "since"

func sinceOf(one *yardv1.Pause) []fact {
	return []fact{{sinceInput, strconv.FormatInt(one.GetSinceMs(), 10)}}
}

// unchanged refuses a form that showed another pause or drain than there is.
func (s stoppable) unchanged(r *Request, drain bool) error {
	now, drained, _, err := s.state(r)
	if err != nil {
		return err
	}
	if drain {
		now = drained
	}
	if sinceOf(now)[0].Value != r.input(sinceInput) {
		return fault.New(fault.Stale, "the %s was paused, drained or resumed since the form was opened: open it again", s.noun)
	}
	return nil
}

// stopFacts say which pause and which drain there is.
func stopFacts(pause, drain *yardv1.Pause) (all []fact) {
	for _, one := range []struct {
		name string
		is   *yardv1.Pause
	}{{"Pause", pause}, {"Drain", drain}} {
		if one.is == nil {
			continue
		}
		text := fmt.Sprintf("since %s, by %s, until %s: %s", words.FromMs(one.is.SinceMs).Text, orNone(one.is.By), untilText(one.is.UntilMs), orNone(one.is.Reason))
		if one.is.WholeDomain {
			text += " (of the whole domain)"
		}
		all = append(all, fact{one.name, text})
	}
	return all
}

func orNone(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

func untilText(ms int64) string {
	if ms == 0 {
		return "it is resumed"
	}
	return words.FromMs(ms).Text
}

// halt pauses or drains.
func (s stoppable) halt(drain bool) func(*Request) (done, error) {
	return func(r *Request) (done, error) {
		minutes, err := r.number(minutesInput)
		if err != nil {
			return done{}, err
		}
		if err := s.unchanged(r, drain); err != nil {
			return done{}, err
		}
		text := fmt.Sprintf("The %s is paused.", s.noun)
		if drain {
			text = fmt.Sprintf("The %s is drained.", s.noun)
		}
		return unless(s.stop(r, drain, yard.PauseOptions{Reason: r.input("reason"), By: r.by(), For: time.Duration(minutes) * time.Minute}), text)
	}
}

func (s stoppable) previewResume(drain bool) func(*Request) (*preview, error) {
	return func(r *Request) (*preview, error) {
		pause, drained, facts, err := s.state(r)
		if err != nil {
			return nil, err
		}
		body := &preview{Text: fmt.Sprintf("The tasks of the %s start again.", s.noun), Facts: append(facts, stopFacts(pause, drained)...)}
		now := pause
		if drain {
			body.Text, now = fmt.Sprintf("New tasks of the %s are accepted again.", s.noun), drained
		}
		body.Kept = sinceOf(now)
		switch {
		case now == nil:
			body.Refused = "There is nothing to end."
		case now.WholeDomain && s.noun != "domain":
			body.Refused = "The whole domain is paused or drained. End that on the page of the domain."
		}
		return body, nil
	}
}

// goOn ends a pause or a drain.
func (s stoppable) goOn(drain bool) func(*Request) (done, error) {
	return func(r *Request) (done, error) {
		if err := s.unchanged(r, drain); err != nil {
			return done{}, err
		}
		text := fmt.Sprintf("The pause of the %s has ended.", s.noun)
		if drain {
			text = fmt.Sprintf("The drain of the %s has ended.", s.noun)
		}
		return unless(s.resume(r, drain), text)
	}
}

func domainState(r *Request) (pause, drain *yardv1.Pause, facts []fact, err error) {
	admin, err := r.Admin()
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := admin.GetDomain(r.Context(), r.Domain)
	return d.Pause.Wire(), d.Drain.Wire(), nil, err
}

func stopDomain(r *Request, drain bool, o yard.PauseOptions) error {
	admin, err := r.Admin()
	if err != nil {
		return err
	}
	if drain {
		_, err = admin.DrainDomain(r.Context(), r.Domain, o)
	} else {
		_, err = admin.PauseDomain(r.Context(), r.Domain, o)
	}
	return err
}

func resumeDomain(r *Request, drain bool) error {
	admin, err := r.Admin()
	if err != nil {
		return err
	}
	_, err = admin.ResumeDomain(r.Context(), r.Domain, drain)
	return err
}

func tasklistState(r *Request) (pause, drain *yardv1.Pause, facts []fact, err error) {
	c, err := r.Client()
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := c.Wire().DescribeTasklist(r.Context(), r.PathValue("tasklist"))
	return d.GetPause(), d.GetDrain(), []fact{{"Ready tasks", words.Count(d.GetReady())}, {"Running tasks", words.Count(d.GetRunning())}}, err
}

func typeState(r *Request) (pause, drain *yardv1.Pause, facts []fact, err error) {
	got, err := getType(r)
	return got.GetPause(), got.GetDrain(), nil, err
}

func groupState(r *Request) (pause, drain *yardv1.Pause, facts []fact, err error) {
	got, err := getGroup(r)
	return got.GetPause(), got.GetDrain(), nil, err
}

func stopPart(of func(*Request) yard.Part) func(*Request, bool, yard.PauseOptions) error {
	return func(r *Request, drain bool, o yard.PauseOptions) error {
		c, err := r.Client()
		if err != nil {
			return err
		}
		do := c.Pause
		if drain {
			do = c.Drain
		}
		_, err = do(r.Context(), of(r), o)
		return err
	}
}

func resumePart(of func(*Request) yard.Part) func(*Request, bool) error {
	return func(r *Request, drain bool) error {
		c, err := r.Client()
		if err != nil {
			return err
		}
		do := c.Resume
		if drain {
			do = c.ResumeDrained
		}
		_, err = do(r.Context(), of(r))
		return err
	}
}
