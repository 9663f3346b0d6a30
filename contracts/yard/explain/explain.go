// Package explain asks why a task does not start: all reasons at once, each with who caused it and when it ends.
//
// Owns: the Go form of the reasons, and their call. Never does: find reasons; the engine does.
//
// On failure: a call returns a *fault.Error, matched by code as those of package yard are. It is safe to repeat, and is repeated as the Client's are.
//
//	why, err := explain.Task(ctx, client, id)
package explain

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Explanation is why a task does not start now.
type Explanation struct {
	// State is the state of the task.
	State yard.State
	// Reasons each keep the task waiting. None: a worker gets it next. A task that runs or has ended has one reason, which says so.
	Reasons []Reason

	wire *yardv1.ExplainResponse
}

// Reason is one reason why a task does not start now.
type Reason struct {
	// Code names the kind of reason, such as LIMIT_FULL. The API reference lists them under Reason; later versions may have more.
	Code string
	// Text is the reason as a sentence, for people.
	Text string
	// About: it is a snapshot of something that changes all the time, or is known in part only.
	About bool
	// Until is when it ends by itself, Since since when it is so. Zero: that is not known.
	Until, Since time.Time
	// By is who paused or drained, or the worker that runs the task. Ref is what the reason is about, such as type/email.send.
	By, Ref string
	// TaskID is the first task of the order key that the task waits behind.
	TaskID string
	// Waiting is how many tasks wait for the same.
	Waiting int64
	// Used of Slots are in use of a full limit. Holders have had theirs for the longest, ten at most.
	Used, Slots int
	Holders     []Holder
	// LastPoller is the name of the worker that polled last, if there is a worker and none is free. It did so LastPolled ago, with its version and types.
	LastPoller, Version string
	Types               []string
	LastPolled          time.Duration
}

// Holder is a task whose attempt uses a slot of a full limit.
type Holder struct {
	TaskID, Worker string
	// For is how long it has had the slot.
	For time.Duration
}

// Wire is e as it travels.
func (e *Explanation) Wire() *yardv1.ExplainResponse { return e.wire }

// Task asks why a task does not start now.
func Task(ctx context.Context, c *yard.Client, taskID string) (*Explanation, error) {
	resp, err := yard.Call[yardv1.ExplainResponse](ctx, c, "tasks.explain", &yardv1.ExplainRequest{TaskId: taskID})
	if err != nil {
		return nil, err
	}
	e := &Explanation{State: yard.State(resp.GetTask().GetState().Name()), wire: resp}
	for _, r := range resp.Reasons {
		e.Reasons = append(e.Reasons, reasonOf(r))
	}
	return e, nil
}

func reasonOf(r *yardv1.Reason) Reason {
	out := Reason{
		Code: r.Code, Text: r.Text, About: r.About, Until: instant(r.UntilMs), Since: instant(r.SinceMs), By: r.By, Ref: r.Ref, TaskID: r.TaskId, Waiting: r.Waiting,
		Used: int(r.GetLimit().GetSlotsInUse()), Slots: int(r.GetLimit().GetMaxConcurrency()),
	}
	for _, h := range r.GetLimit().GetHolders() {
		out.Holders = append(out.Holders, Holder{h.TaskId, h.Worker, milliseconds(h.HeldForMs)})
	}
	if p := r.LastPoller; p != nil {
		out.LastPoller, out.Version, out.Types, out.LastPolled = p.Worker, p.Version, p.Types, milliseconds(p.SeenAgoMs)
	}
	return out
}

// instant is a time in Unix ms; 0 is the zero time.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
