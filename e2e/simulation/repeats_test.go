package simulation

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// ask is an event about a task: two with one wish are a repetition.
type ask struct {
	at place
	wish
}

type wish struct {
	kind    historysim.Kind
	fence   ids.Token
	domain  string
	request uint64
}

func wishOf(e *historysim.Event) wish {
	w := wish{kind: e.Kind, fence: e.Fence, domain: e.Domain}
	if e.Update != nil {
		w.request = e.Update.Request
	}
	if e.Redrive != nil {
		w.request = e.Redrive.Request
	}
	return w
}

// noted remembers an event of the log. A carried state changes nothing.
func (c *checker) noted(e *historysim.Event, at place) {
	if e.Kind != historysim.Fence {
		c.asks[e.ID] = append(c.asks[e.ID], ask{at, wishOf(e)})
	}
}

// otherwise holds I4: who repeats what it asked gets the same verdict, by whatever owner, unless another
// event about the task lies between. Whether a wait is over is a matter of time. An outcome that is
// looked for until the next attempt has begun may be STALE: the replica's doc says so. Another owner, which has read the stay of that attempt alone, may know it still.
func (c *checker) otherwise(e *historysim.Event, v *historysim.Verdict, at place) {
	before, ok := c.repeated(e, at)
	if !ok {
		return
	}
	first, ok := c.verdictOf[before]
	if !ok || e.Kind == historysim.Started && first.verdict.Code == fault.FailedPrecondition || first.verdict.Code == fault.Unavailable {
		return
	}
	if e.Kind == historysim.Started && first.verdict.Code == fault.ResourceExhausted {
		return // it fits into the answer now, since the attempt that was granted beside it has ended; matching hands it back
	}
	if expired := e.Kind == historysim.Started && c.w.plan.has(steppingServer) && c.w.plan.has(expiries); expired && first.verdict.Code == fault.Stale {
		return // the log's time may have gone back since
	}
	if v.Fenced || first.verdict.Fenced || searched(e) && (v.Code == fault.Unknown || first.verdict.Code == fault.Unknown) {
		return // another owner of the shard asks, or another asks of it
	}
	if _, later := c.holders[attempt{e.ID, e.Fence.Version + 1}]; later && (v.Code == fault.Stale || first.verdict.Code == fault.Stale) {
		return
	}
	if w := &first.verdict; (w.Code == "") != (v.Code == "") || w.Granted != v.Granted || w.CancelRequested != v.CancelRequested {
		c.w.violated("I4: %v of %s gets %q at event %d, and %q at event %d: %+v, %+v", e.Kind, c.w.name(e.ID), w.Code, before.seq, v.Code, at.seq,
			w.Verdict, v.Verdict)
	}
}

// repeated is where the wish of an event came last, if nothing else about the task came since.
func (c *checker) repeated(e *historysim.Event, at place) (place, bool) {
	all, found := c.asks[e.ID], false
	for i := len(all) - 1; i >= 0; i-- {
		switch {
		case all[i].at == at:
			found = true
		case found:
			return all[i].at, all[i].wish == wishOf(e)
		}
	}
	return place{}, false
}
