package record

import (
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// storedCommand is a command that waits for its task, as a snapshot carries it.
func storedCommand(ev *taskstate.Event) *logv1.SnapshotCommand {
	return &logv1.SnapshotCommand{Seq: ev.Seq, Index: ev.Index, AtMs: ev.At, Event: &logv1.Event{
		Kind: logv1.EventKind(ev.Kind), TaskId: ev.ID[:], Domain: ev.Domain, Message: ev.Message, OrderKey: ev.OrderKey, CancelRunning: ev.CancelRunning,
		Update: storedUpdate(ev.Update), Redrive: storedRedrive(ev.Redrive),
	}}
}

// command reads one; it owns its bytes.
func (d *Decoder) command(c *logv1.SnapshotCommand) (ev taskstate.Event, err error) {
	e := c.GetEvent()
	id, err := taskOf(e)
	if err != nil {
		return ev, err
	}
	if ev = d.event(e, id, nil); !ev.Kind.Command() {
		return ev, fmt.Errorf("an event of kind %d waits for its task", e.GetKind())
	}
	ev.Seq, ev.Index, ev.At = c.Seq, c.Index, c.AtMs
	return ev, nil
}

func storedUpdate(u *taskstate.Update) *logv1.Update {
	if u == nil {
		return nil
	}
	out := &logv1.Update{
		IfRevision: u.IfRevision, Priority: u.Priority, DueAtMs: u.DueAt, DelayMs: u.DelayMS, RunNow: u.Now,
		Expiry: storedExpiry(taskstate.Expiry{StartWithinMS: u.StartWithinMS, FinishWithinMS: u.FinishWithinMS}),
		Group:  u.Group, Tasklist: u.Tasklist, Headers: storedHeaders(u.Headers), Request: u.Request, SinceMs: u.Since, SoleUntilMs: u.SoleUntil, EndState: int32(u.EndState),
		Payload: u.Payload.Data, PayloadEncoding: u.Payload.Encoding, HasPayload: u.HasPayload, Policy: storedPart(u.Policy),
	}
	if w := u.Whole; w != nil {
		out.Replace, out.Type, out.Cost = true, w.Type, w.Cost
		out.UniqueForMs, out.OrderBlocks, out.Trace = w.UniqueForMS, w.OrderBlocks, []byte(w.Trace)
	}
	return out
}

func storedRedrive(r *taskstate.Redrive) *logv1.Redrive {
	if r == nil {
		return nil
	}
	return &logv1.Redrive{Letter: r.Letter, Tasklist: r.Tasklist, Parkings: r.Parkings, To: r.To, Policy: storedPart(r.Policy), Request: r.Request}
}

// storedPart is the fields that replace those of a task's policy.
func storedPart(p *taskstate.Policy) *logv1.Policy {
	if p == nil {
		return nil
	}
	out := new(logv1.Policy)
	fillPolicy(out, p)
	return out
}
