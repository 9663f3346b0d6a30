package record

import (
	"math"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// storedHeaders are headers as records carry them.
func storedHeaders(all []taskstate.Header) []*logv1.Header {
	if len(all) == 0 {
		return nil
	}
	slab, stored := make([]logv1.Header, len(all)), make([]*logv1.Header, len(all))
	for i, h := range all {
		slab[i].Name, slab[i].Value = h.Name, h.Value
		stored[i] = &slab[i]
	}
	return stored
}

// storedExpiry is the time that a task has as records carry it.
func storedExpiry(x taskstate.Expiry) *logv1.Expiry {
	if x == (taskstate.Expiry{}) {
		return nil
	}
	return &logv1.Expiry{StartWithinMs: x.StartWithinMS, FinishWithinMs: x.FinishWithinMS, StartByMs: x.StartBy, FinishByMs: x.FinishBy}
}

// storedUnique is a unique key as records carry it. Where its message lies is known once the task is read.
func storedUnique(u *taskstate.Unique) *logv1.Unique {
	if u == nil {
		return nil
	}
	return &logv1.Unique{Key: u.Key, ForMs: u.ForMS, Seq: u.Seq, Before: u.Before}
}

// storedOrder is an order key as records carry it.
func storedOrder(o *taskstate.Order) *logv1.Order {
	if o == nil {
		return nil
	}
	return &logv1.Order{Key: o.Key, Index: o.Index, Turn: o.Turn, Blocks: o.Blocks, Blocked: o.Blocked}
}

// storedUpdates is what the updates of a task have left as records carry it.
func storedUpdates(x *taskstate.Extra) *logv1.Updates {
	if x == nil || x.Updates == nil {
		return nil
	}
	u := x.Updates
	return &logv1.Updates{
		Applied: u.Applied, Seq: u.Seq, Index: u.Index, Request: u.Request, Refused: u.Refused, AtMs: u.At, Passed: u.Passed, PassedNow: u.PassedNow,
	}
}

// update reads what an event changes of its task; nil = nothing. It owns its bytes.
func (d *Decoder) update(u *logv1.Update) *taskstate.Update {
	if u == nil {
		return nil
	}
	out := &taskstate.Update{
		IfRevision: u.IfRevision, Priority: priority(u.Priority), DueAt: u.DueAtMs, DelayMS: u.DelayMs, Now: u.RunNow,
		StartWithinMS: u.Expiry.GetStartWithinMs(), FinishWithinMS: u.Expiry.GetFinishWithinMs(),
		Group: strings.Clone(u.Group), Tasklist: d.tasklist(u.Tasklist), Headers: d.headers(u.Headers), Request: u.Request,
		Since: u.SinceMs, SoleUntil: u.SoleUntilMs, EndState: taskstate.State(min(uint32(u.EndState), math.MaxUint8)),
	}
	if u.HasPayload {
		out.Payload, out.HasPayload = blob(u.Payload, u.PayloadEncoding), true
	}
	out.Policy = d.partOf(u.Policy)
	if u.Replace {
		out.Whole = &taskstate.Whole{Type: d.intern(u.Type), Cost: u.Cost, UniqueForMS: u.UniqueForMs, OrderBlocks: u.OrderBlocks, Trace: string(u.Trace)}
		if out.Priority == 0 || out.Policy == nil { // it is not of our making
			out.Whole.Type = ""
		}
	}
	return out
}

// partOf reads the fields that replace those of a task's policy; nil = none.
func (d *Decoder) partOf(p *logv1.Policy) *taskstate.Policy {
	if p == nil {
		return nil
	}
	out := d.policy(p)
	if p.MaxAttempts == 0 && out.MaxAttempts != 0 { // in a task it is never 0
		own := *out
		own.MaxAttempts, out = 0, &own
	}
	return out
}

// redrive reads which dead letter an event brings back; nil = none.
func (d *Decoder) redrive(r *logv1.Redrive) *taskstate.Redrive {
	if r == nil {
		return nil
	}
	return &taskstate.Redrive{Letter: r.Letter, Tasklist: strings.Clone(r.Tasklist), Parkings: r.Parkings, To: strings.Clone(r.To), Policy: d.partOf(r.Policy), Request: r.Request}
}

// storedRedriven is what the redrives of a task have left as records carry it.
func storedRedriven(x *taskstate.Extra) *logv1.Redriven {
	if x == nil || x.Redriven == nil {
		return nil
	}
	stored := &logv1.Redriven{Count: x.Redriven.Count, Seq: x.Redriven.Seq, Index: x.Redriven.Index}
	for _, request := range x.Redriven.Requests {
		if request != 0 {
			stored.Requests = append(stored.Requests, request)
		}
	}
	return stored
}

// priority keeps one that no lane has from its task; it is not of our making.
func priority(p int32) int32 {
	if p < int32(ids.LaneFirst) || p > int32(ids.LaneLast) {
		return 0
	}
	return p
}

// tasklist keeps a name that no tasklist has from its task; it is not of our making.
func (d *Decoder) tasklist(name string) string {
	if name == "" {
		return ""
	}
	known, err := interned(d.names, name, ids.CheckName)
	if err != nil {
		return ""
	}
	return known
}

// headers reads headers; their names are interned.
func (d *Decoder) headers(all []*logv1.Header) []taskstate.Header {
	if len(all) == 0 {
		return nil
	}
	out := make([]taskstate.Header, len(all))
	for i, h := range all {
		out[i] = taskstate.Header{Name: d.intern(h.Name), Value: strings.Clone(h.Value)}
	}
	return out
}

// extra reads what few records have. Names of headers are interned, since the tasks of one program share them.
func (d *Decoder) extra(r *logv1.Record) *taskstate.Extra {
	if len(r.Headers) == 0 && r.Expiry == nil && r.Group == "" && r.Cost <= 1 && r.Unique == nil && r.Updates == nil && r.Redriven == nil && r.Order == nil && r.BatchId == "" {
		return nil
	}
	x := &taskstate.Extra{Group: strings.Clone(r.Group), Cost: r.Cost, Expiry: taskstate.Expiry{
		StartWithinMS: r.Expiry.GetStartWithinMs(), FinishWithinMS: r.Expiry.GetFinishWithinMs(),
		StartBy: r.Expiry.GetStartByMs(), FinishBy: r.Expiry.GetFinishByMs(),
	}}
	if u := r.Unique; u != nil {
		x.Unique = &taskstate.Unique{Key: strings.Clone(u.Key), ForMS: u.ForMs, Seq: u.Seq, Before: u.Before}
	}
	if o := r.Order; o != nil {
		x.Order = &taskstate.Order{Key: strings.Clone(o.Key), Index: o.Index, Turn: o.Turn, Blocks: o.Blocks, Blocked: o.Blocked}
	}
	if r.BatchId != "" {
		x.Batch = &taskstate.Batch{ID: d.intern(r.BatchId), Made: r.BatchMadeMs}
	}
	x.Headers = d.headers(r.Headers)
	if u := r.Updates; u != nil {
		x.Updates = &taskstate.Updates{
			Applied: u.Applied, Seq: u.Seq, Index: u.Index, Request: u.Request, Refused: u.Refused, At: u.AtMs, Passed: u.Passed, PassedNow: u.PassedNow,
		}
	}
	if was := r.Redriven; was != nil {
		x.Redriven = &taskstate.Redriven{Count: was.Count, Seq: was.Seq, Index: was.Index}
		copy(x.Redriven.Requests[:], was.Requests)
	}
	return x
}

// publicHeaders are headers as the API shows them.
func publicHeaders(all []taskstate.Header) map[string]string {
	if len(all) == 0 {
		return nil
	}
	shown := make(map[string]string, len(all))
	for _, h := range all {
		shown[h.Name] = h.Value
	}
	return shown
}
