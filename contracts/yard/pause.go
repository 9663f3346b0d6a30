package yard

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Pause says why no task of a tasklist, a type or a group starts; what runs already goes on, and submits are accepted. As a drain it says why
// no task is accepted; what was accepted goes on.
type Pause struct {
	// Reason is why, By is who paused or drained it, for people.
	Reason, By string
	// Since is since when, Until when that ends by itself; zero: not before it is resumed.
	Since, Until time.Time
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

// PauseTasklist has no task of a tasklist start until it is resumed, and returns the pause as stored. It takes effect
// within a second. Pausing again replaces the pause, and changed settings keep it. FAILED_PRECONDITION: 1000 tasklists,
// types and groups of the domain are paused.
func (c *Client) PauseTasklist(ctx context.Context, name string, o PauseOptions) (Pause, error) {
	req := &yardv1.PauseTasklistRequest{Name: name, Reason: o.Reason, By: o.By, ForMs: milliseconds(o.For)}
	resp, err := call[yardv1.PauseTasklistResponse](ctx, &c.transport, c.subject("tasklists.pause"), req)
	return pauseOf(resp.GetPause()), err
}

// ResumeTasklist ends the pause of a tasklist, and returns it as it was. NOT_FOUND: it is not paused, or an earlier try
// resumed it and its answer was lost.
func (c *Client) ResumeTasklist(ctx context.Context, name string) (Pause, error) {
	resp, err := call[yardv1.ResumeTasklistResponse](ctx, &c.transport, c.subject("tasklists.resume"), &yardv1.ResumeTasklistRequest{Name: name})
	return pauseOf(resp.GetPause()), err
}

// PauseType is PauseTasklist for a task type, in all tasklists.
func (c *Client) PauseType(ctx context.Context, name string, o PauseOptions) (Pause, error) {
	req := &yardv1.PauseTypeRequest{Name: name, Reason: o.Reason, By: o.By, ForMs: milliseconds(o.For)}
	resp, err := call[yardv1.PauseTypeResponse](ctx, &c.transport, c.subject("types.pause"), req)
	return pauseOf(resp.GetPause()), err
}

// ResumeType is ResumeTasklist for a task type.
func (c *Client) ResumeType(ctx context.Context, name string) (Pause, error) {
	resp, err := call[yardv1.ResumeTypeResponse](ctx, &c.transport, c.subject("types.resume"), &yardv1.ResumeTypeRequest{Name: name})
	return pauseOf(resp.GetPause()), err
}

// PauseGroup is PauseTasklist for a group (Task.Group), in all tasklists.
func (c *Client) PauseGroup(ctx context.Context, name string, o PauseOptions) (Pause, error) {
	req := &yardv1.PauseGroupRequest{Name: name, Reason: o.Reason, By: o.By, ForMs: milliseconds(o.For)}
	resp, err := call[yardv1.PauseGroupResponse](ctx, &c.transport, c.subject("groups.pause"), req)
	return pauseOf(resp.GetPause()), err
}

// ResumeGroup is ResumeTasklist for a group.
func (c *Client) ResumeGroup(ctx context.Context, name string) (Pause, error) {
	resp, err := call[yardv1.ResumeGroupResponse](ctx, &c.transport, c.subject("groups.resume"), &yardv1.ResumeGroupRequest{Name: name})
	return pauseOf(resp.GetPause()), err
}

// Wire is the pause as the API writes it; nil if there is none.
func (p *Pause) Wire() *yardv1.Pause {
	if p == nil {
		return nil
	}
	w := &yardv1.Pause{Reason: p.Reason, By: p.By, SinceMs: p.Since.UnixMilli()}
	if !p.Until.IsZero() {
		w.UntilMs = p.Until.UnixMilli()
	}
	return w
}

func pauseOf(w *yardv1.Pause) Pause {
	return Pause{Reason: w.GetReason(), By: w.GetBy(), Since: instant(w.GetSinceMs()), Until: instant(w.GetUntilMs())}
}

// maybePaused is nil where there is no pause.
func maybePaused(w *yardv1.Pause) *Pause {
	if w == nil {
		return nil
	}
	p := pauseOf(w)
	return &p
}
