package record

import (
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
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

// extra reads what few records have. Names of headers are interned, since the tasks of one program share them.
func (d *Decoder) extra(r *logv1.Record) *taskstate.Extra {
	if len(r.Headers) == 0 && r.Expiry == nil && r.Group == "" && r.Cost <= 1 && r.Unique == nil {
		return nil
	}
	x := &taskstate.Extra{Group: strings.Clone(r.Group), Cost: r.Cost, Expiry: taskstate.Expiry{
		StartWithinMS: r.Expiry.GetStartWithinMs(), FinishWithinMS: r.Expiry.GetFinishWithinMs(),
		StartBy: r.Expiry.GetStartByMs(), FinishBy: r.Expiry.GetFinishByMs(),
	}}
	if u := r.Unique; u != nil {
		x.Unique = &taskstate.Unique{Key: strings.Clone(u.Key), ForMS: u.ForMs, Seq: u.Seq, Before: u.Before}
	}
	if len(r.Headers) > 0 {
		x.Headers = make([]taskstate.Header, len(r.Headers))
	}
	for i, h := range r.Headers {
		x.Headers[i] = taskstate.Header{Name: d.intern(h.Name), Value: strings.Clone(h.Value)}
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
