package doctor

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Batches (decision 0047): documents of the archives say how the tasks of a batch ended, and the home record whether the batch is over.

const (
	// batchLate is how long a batch may stay though it has expired.
	batchLate = 10 * time.Minute
	// countedWithin is how long ago tasks ended that a document must still count: the server forgets one that long after its last change.
	countedWithin = topology.BatchExpiresMax
)

// counts are how tasks of a batch in one archive ended: those that are there, and what its document says.
type counts struct {
	found, said ends4
}

// ends4 are the four ends.
type ends4 struct{ completed, dead, cancelled, expired int64 }

func (e ends4) sum() int64 { return e.completed + e.dead + e.cancelled + e.expired }

func endsOf(d *logv1.BatchEnds) ends4 {
	return ends4{d.GetCompleted(), d.GetDead(), d.GetCancelled(), d.GetExpired()}
}

// hides tells whether e has fewer of an end than are found. Of dead ones some may have been redriven.
func (e ends4) hides(found ends4) bool {
	return e.completed < found.completed || e.cancelled < found.cancelled || e.expired < found.expired || e.sum() < found.sum()
}

func (e ends4) String() string {
	return fmt.Sprintf("%d completed, %d dead, %d cancelled, %d expired", e.completed, e.dead, e.cancelled, e.expired)
}

// call is the callback of a batch that is over.
type call struct {
	domain, batch string
	seq           uint64
	endedMS       int64
}

// batchesOf are the batches that a section's findings are about; nil = all.
func batchesOf(again []Finding, s section) map[string]bool {
	if again == nil {
		return nil
	}
	only := map[string]bool{}
	for _, f := range again {
		if f.section == s && f.batch != "" {
			only[f.batch] = true
		}
	}
	return only
}

// hasBatch tells whether a batch is of a part.
func (p part) hasBatch(batch string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(batch)) // it never fails
	return h.Sum64()%p.of == p.at
}

// countsOf are those of a batch; nil = the pass is not about it.
func (p *pass) countsOf(batch string) *counts {
	if !p.part.hasBatch(batch) || p.onlyBatches != nil && !p.onlyBatches[batch] {
		return nil
	}
	c := p.counts[batch]
	if c == nil {
		c = &counts{}
		p.counts[batch] = c
	}
	return c
}

// counted takes a document of a batch.
func (p *pass) counted(r natslog.Record) error {
	var d logv1.BatchEnds
	if !p.decode(topology.ArchiveStream(p.partition), r, &d) {
		return nil
	}
	p.scanned.Batches++
	if c := p.countsOf(topology.BatchOfEnds(p.partition, r.Subject)); c != nil {
		c.said = endsOf(&d)
	}
	return p.full()
}

// memberEnded counts a finished task of a batch as its document must.
func (p *pass) memberEnded(rec *logv1.Record) {
	if rec.BatchId == "" || p.age(rec.FinishedAtMs) > countedWithin {
		return
	}
	c := p.countsOf(topology.BatchOf(rec.Domain, rec.BatchId, rec.BatchMadeMs))
	if c == nil {
		return
	}
	switch yardv1.TaskState(rec.State) {
	case yardv1.TaskState_TASK_STATE_COMPLETED:
		c.found.completed++
	case yardv1.TaskState_TASK_STATE_DEAD:
		c.found.dead++
	case yardv1.TaskState_TASK_STATE_CANCELLED:
		c.found.cancelled++
	case yardv1.TaskState_TASK_STATE_EXPIRED:
		c.found.expired++
	}
	if rec.Redriven.GetCount() > 0 {
		c.found.dead--
	}
}

// checkCounts finds documents that count less than there is. One that was not met has moved on meanwhile, so it is asked for.
func (x *examiner) checkCounts(ctx context.Context, p *pass) error {
	stream := topology.ArchiveStream(p.partition)
	for batch, c := range p.counts {
		if !c.said.hides(c.found) {
			continue
		}
		subject := topology.BatchEndsOf(p.partition, batch)
		m, err := natslog.LastForSubject(ctx, x.source.js, stream, subject)
		if err != nil {
			return err
		}
		var d logv1.BatchEnds
		if m != nil && d.UnmarshalVT(m.Data) != nil {
			continue // it was met as what cannot be read
		}
		if said := endsOf(&d); said.hides(c.found) {
			p.report(Finding{
				Code: BatchMiscounted, Where: stream + " " + subject, Domain: topology.DomainOfBatch(batch), batch: batch, batchID: d.BatchId,
				What: fmt.Sprintf("it counts %s of a batch, and there are %s", said, c.found),
			})
		}
	}
	return nil
}

// batchHome takes a batch: if it is over, it was over in time and with all its tasks, and its callback must be somewhere.
func (p *pass) batchHome(r natslog.Record) error {
	var h logv1.BatchHome
	if !p.decode(topology.HistoryStream(p.partition), r, &h) {
		return nil
	}
	domain := topology.DomainOfBatchHome(p.partition, r.Subject)
	report := func(code Code, format string, args ...any) {
		if p.onlyBatches == nil || p.onlyBatches[r.Subject] {
			p.report(Finding{Code: code, Where: p.inLog(r.Seq), Domain: domain, batch: r.Subject, batchID: h.BatchId, What: fmt.Sprintf("batch %q ", h.BatchId) + fmt.Sprintf(format, args...)})
		}
	}
	switch ended := endsOf(h.Ends).sum(); {
	case h.EndedAtMs == 0 && p.age(h.ExpiresAtMs) > batchLate:
		report(BatchStuck, "was to expire at %s", time.UnixMilli(h.ExpiresAtMs).UTC().Format(time.RFC3339))
	case h.EndedAtMs == 0 || h.Expired:
	case ended != h.Tasks:
		report(BatchMiscounted, "has %d tasks, and %d ended", h.Tasks, ended)
	}
	if h.EndedAtMs == 0 || h.Expired || h.Callback == nil {
		return nil
	}
	id, err := ids.TaskIDFromBytes(h.CallbackTaskId)
	if err != nil {
		report(CallbackMissing, "names no callback")
		return nil
	}
	if p.keep(id) {
		p.calls[id] = call{domain, h.BatchId, r.Seq, h.EndedAtMs}
	}
	return p.full()
}

func (p *pass) checkCalls() {
	for id, c := range p.calls {
		if p.tasks[id] != nil || p.hasEnd(id, 0) || p.quarantined || p.age(c.endedMS) < fresh || p.age(c.endedMS) > loggedWithin {
			continue
		}
		p.report(Finding{Code: CallbackMissing, Where: p.inLog(c.seq), id: id, Domain: c.domain, batchID: c.batch, What: fmt.Sprintf("the callback of batch %q is in no store", c.batch)})
	}
}
