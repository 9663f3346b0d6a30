package yard

import (
	"cmp"
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Pause says why no task of a domain, a tasklist, a type or a group starts; what runs already goes on, and submits are accepted. As a drain it says why
// no task is accepted; what was accepted goes on.
type Pause struct {
	// Reason is why, By is who paused or drained it, for people.
	Reason, By string
	// Since is since when, Until when that ends by itself; zero: not before it is resumed.
	Since, Until time.Time
	// WholeDomain: it is of the whole domain, and an administrator resumes it.
	WholeDomain bool
}

// PauseOptions say why, and for how long. The zero value is a pause or a drain until it is resumed.
type PauseOptions struct {
	// Reason is for people; at most 1024 bytes.
	Reason string
	// By is who pauses or drains it, for people; at most 128 bytes.
	By string
	// For is after how long it ends by itself, 1 s to 366 days. Default 0: not before it is resumed.
	For time.Duration
}

// Part is the tasks of a tasklist, of a type or of a group in a domain: OfTasklist, OfType or OfGroup of its name.
type Part struct{ noun, name string }

// OfTasklist is the tasks of a tasklist.
func OfTasklist(name string) Part { return Part{"tasklists", name} }

// OfType is the tasks of a type, in all tasklists.
func OfType(name string) Part { return Part{"types", name} }

// OfGroup is the tasks of a group (Task.Group), in all tasklists.
func OfGroup(name string) Part { return Part{"groups", name} }

// verb is what is asked of p. The zero Part goes to tasklists, which refuse that it has no name.
func (p Part) verb(verb string) string { return cmp.Or(p.noun, "tasklists") + "." + verb }

// Pause has no task of a part start until it is resumed, and returns the pause as stored. It takes effect
// within a second. Pausing again replaces the pause, and changed settings keep it. FAILED_PRECONDITION: 1000 tasklists,
// types and groups of the domain are paused.
func (c *Client) Pause(ctx context.Context, p Part, o PauseOptions) (Pause, error) {
	resp, err := call[yardv1.PauseResponse](ctx, &c.transport, c.subject(p.verb("pause")), o.wire(p.name))
	return pauseOf(resp.GetPause()), err
}

// Resume ends the pause of a part, and returns it as it was. NOT_FOUND: it is not paused, or an earlier try
// resumed it and its answer was lost.
func (c *Client) Resume(ctx context.Context, p Part) (Pause, error) { return c.resume(ctx, p, false) }

// Drain has submits to a tasklist, or of tasks of a type or a group, refused with FAILED_PRECONDITION until the drain ends, and returns the drain
// as stored. It takes effect within a second. Accepted tasks go on. Draining again replaces the drain. FAILED_PRECONDITION: 1000
// tasklists, types and groups of the domain are drained.
func (c *Client) Drain(ctx context.Context, p Part, o PauseOptions) (Pause, error) {
	resp, err := call[yardv1.DrainResponse](ctx, &c.transport, c.subject(p.verb("drain")), o.wire(p.name))
	return pauseOf(resp.GetDrain()), err
}

// ResumeDrained ends the drain of a part, as Resume does the pause.
func (c *Client) ResumeDrained(ctx context.Context, p Part) (Pause, error) {
	return c.resume(ctx, p, true)
}

func (c *Client) resume(ctx context.Context, p Part, drain bool) (Pause, error) {
	resp, err := call[yardv1.PauseResponse](ctx, &c.transport, c.subject(p.verb("resume")), &yardv1.ResumeRequest{Name: p.name, Drain: drain})
	return pauseOf(resp.GetPause()), err
}

func (o PauseOptions) wire(name string) *yardv1.PauseRequest {
	return &yardv1.PauseRequest{Name: name, Reason: o.Reason, By: o.By, ForMs: milliseconds(o.For)}
}

// Wire is the pause as the API writes it; nil if there is none.
func (p *Pause) Wire() *yardv1.Pause {
	if p == nil {
		return nil
	}
	w := &yardv1.Pause{Reason: p.Reason, By: p.By, SinceMs: p.Since.UnixMilli(), WholeDomain: p.WholeDomain}
	if !p.Until.IsZero() {
		w.UntilMs = p.Until.UnixMilli()
	}
	return w
}

func pauseOf(w *yardv1.Pause) Pause {
	return Pause{Reason: w.GetReason(), By: w.GetBy(), Since: instant(w.GetSinceMs()), Until: instant(w.GetUntilMs()), WholeDomain: w.GetWholeDomain()}
}

// maybePaused is nil where there is no pause.
func maybePaused(w *yardv1.Pause) *Pause {
	if w == nil {
		return nil
	}
	p := pauseOf(w)
	return &p
}
