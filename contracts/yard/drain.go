package yard

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// DrainTasklist has submits to a tasklist refused with FAILED_PRECONDITION until it is resumed, and returns the drain as stored. It
// takes effect within a second. What was accepted goes on: it starts, is tried again, and comes back from a delay. A submit that was
// stored before and is repeated with its request id is answered as before. Draining again replaces the drain.
// FAILED_PRECONDITION: 1000 tasklists, types and groups of the domain are drained.
func (c *Client) DrainTasklist(ctx context.Context, name string, o PauseOptions) (Pause, error) {
	req := &yardv1.DrainTasklistRequest{Name: name, Reason: o.Reason, By: o.By, ForMs: milliseconds(o.For)}
	resp, err := call[yardv1.DrainTasklistResponse](ctx, &c.transport, c.subject("tasklists.drain"), req)
	return pauseOf(resp.GetDrain()), err
}

// ResumeDrainedTasklist ends the drain of a tasklist, and returns it as it was; a pause stays. NOT_FOUND: it is not drained, or an
// earlier try resumed it and its answer was lost.
func (c *Client) ResumeDrainedTasklist(ctx context.Context, name string) (Pause, error) {
	resp, err := call[yardv1.ResumeTasklistResponse](ctx, &c.transport, c.subject("tasklists.resume"), &yardv1.ResumeTasklistRequest{Name: name, Drain: true})
	return pauseOf(resp.GetPause()), err
}

// DrainType is DrainTasklist for a task type, in all tasklists.
func (c *Client) DrainType(ctx context.Context, name string, o PauseOptions) (Pause, error) {
	req := &yardv1.DrainTypeRequest{Name: name, Reason: o.Reason, By: o.By, ForMs: milliseconds(o.For)}
	resp, err := call[yardv1.DrainTypeResponse](ctx, &c.transport, c.subject("types.drain"), req)
	return pauseOf(resp.GetDrain()), err
}

// ResumeDrainedType is ResumeDrainedTasklist for a task type.
func (c *Client) ResumeDrainedType(ctx context.Context, name string) (Pause, error) {
	resp, err := call[yardv1.ResumeTypeResponse](ctx, &c.transport, c.subject("types.resume"), &yardv1.ResumeTypeRequest{Name: name, Drain: true})
	return pauseOf(resp.GetPause()), err
}

// DrainGroup is DrainTasklist for a group (Task.Group), in all tasklists.
func (c *Client) DrainGroup(ctx context.Context, name string, o PauseOptions) (Pause, error) {
	req := &yardv1.DrainGroupRequest{Name: name, Reason: o.Reason, By: o.By, ForMs: milliseconds(o.For)}
	resp, err := call[yardv1.DrainGroupResponse](ctx, &c.transport, c.subject("groups.drain"), req)
	return pauseOf(resp.GetDrain()), err
}

// ResumeDrainedGroup is ResumeDrainedTasklist for a group.
func (c *Client) ResumeDrainedGroup(ctx context.Context, name string) (Pause, error) {
	resp, err := call[yardv1.ResumeGroupResponse](ctx, &c.transport, c.subject("groups.resume"), &yardv1.ResumeGroupRequest{Name: name, Drain: true})
	return pauseOf(resp.GetPause()), err
}
