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

// Batches (decision 0047): documents of the archives say how the tasks of a batch ended, and the home record whether the batch is over, with how many tasks.

const (
	// batchLate is how long a batch may stay as it is though it could be over: its keeper checks it every five minutes or more often.
	batchLate = 10 * time.Minute
	// countedWithin is how long ago tasks ended that a document must still count: the server forgets one that long after its last change.
	countedWithin = topology.BatchExpiresMax
)

// counts are how tasks of a batch in one archive ended: those that are there, and what its document says.
type counts struct {
	found, said ends4
	seq         uint64
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
		c.said, c.seq = endsOf(&d), r.Seq
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

// batchHome takes a batch: its callback must be somewhere.
func (p *pass) batchHome(r natslog.Record) error {
	var h logv1.BatchHome
	if !p.decode(topology.HistoryStream(p.partition), r, &h) || h.EndedAtMs == 0 || h.Expired || h.Callback == nil {
		return nil
	}
	domain := topology.DomainOfBatchHome(p.partition, r.Subject)
	id, err := ids.TaskIDFromBytes(h.CallbackTaskId)
	if err != nil {
		if p.onlyBatches == nil || p.onlyBatches[r.Subject] {
			p.report(Finding{Code: CallbackMissing, Where: p.inLog(r.Seq), Domain: domain, batch: r.Subject, batchID: h.BatchId, What: fmt.Sprintf("batch %q names no callback", h.BatchId)})
		}
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

// lookAtBatches compares the documents and the home records of all partitions, in as many parts as fit into memory.
func (x *examiner) lookAtBatches(ctx context.Context, only map[string]bool) (found []Finding, err error) {
	err = inParts([]part{{0, 1}}, func(of part) error {
		some, err := x.batchesIn(ctx, of, only)
		found = append(found, some...)
		return err
	})
	return found, err
}

// batchLook is a look at the batches of a part.
type batchLook struct {
	part  part
	only  map[string]bool
	most  int
	began time.Time
	// ended is how many tasks of each batch have ended.
	ended map[string]int64
	found []Finding
}

func (l *batchLook) about(batch string) bool {
	return l.part.hasBatch(batch) && (l.only == nil || l.only[batch])
}

func (x *examiner) batchesIn(ctx context.Context, of part, only map[string]bool) (found []Finding, err error) {
	l := &batchLook{part: of, only: only, most: max(x.opts.TasksMax/2, 1), ended: map[string]int64{}}
	if l.began, err = x.source.now(ctx); err != nil {
		return nil, err
	}
	for p := range x.n.History {
		if err := l.addUp(ctx, x.source, p); err != nil {
			return nil, err
		}
	}
	for p := range x.n.History {
		cfg := natslog.ReadConfig{Stream: topology.HistoryStream(p), Filters: []string{topology.BatchHomeAny(p)}}
		err := natslog.ReadAll(ctx, x.source.js, cfg, func(r natslog.Record) error {
			var h logv1.BatchHome
			if h.UnmarshalVT(r.Data) == nil { // else the look at its partition reports it
				l.home(at(topology.HistoryStream(p), r.Seq), topology.DomainOfBatchHome(p, r.Subject), &h)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return l.found, nil
}

// home holds a batch against the sum of its documents. These are read first, and count all tasks before the batch is over.
func (l *batchLook) home(where, domain string, h *logv1.BatchHome) {
	batch := topology.BatchOf(domain, h.BatchId, h.CreatedAtMs)
	if !l.about(batch) {
		return
	}
	report := func(code Code, format string, args ...any) {
		l.found = append(l.found, Finding{
			Code: code, Where: where, Domain: domain, What: fmt.Sprintf("batch %q ", h.BatchId) + fmt.Sprintf(format, args...), section: section{kind: sectionBatches}, batch: batch, batchID: h.BatchId,
		})
	}
	late := func(ms int64) bool { return l.began.Sub(time.UnixMilli(ms)) > batchLate }
	switch ended := endsOf(h.Ends).sum(); {
	case h.EndedAtMs == 0 && late(h.ExpiresAtMs):
		report(BatchStuck, "was to expire at %s", time.UnixMilli(h.ExpiresAtMs).UTC().Format(time.RFC3339))
	case h.EndedAtMs == 0 || h.Expired:
	case ended != h.Tasks:
		report(BatchMiscounted, "has %d tasks, and %d ended", h.Tasks, ended)
	case h.EndedAtMs < l.began.UnixMilli() && l.ended[batch] != h.Tasks:
		report(BatchMiscounted, "has %d tasks, and the archives count %d", h.Tasks, l.ended[batch])
	}
}

// addUp adds up how the tasks of batches in a partition ended.
func (l *batchLook) addUp(ctx context.Context, s source, p int) error {
	cfg := natslog.ReadConfig{Stream: topology.ArchiveStream(p), Filters: []string{topology.BatchEndsAny(p)}}
	return natslog.ReadAll(ctx, s.js, cfg, func(r natslog.Record) error {
		var d logv1.BatchEnds
		batch := topology.BatchOfEnds(p, r.Subject)
		if !l.about(batch) || d.UnmarshalVT(r.Data) != nil {
			return nil
		}
		if _, ok := l.ended[batch]; !ok && len(l.ended) >= l.most && l.part.of < 1<<20 {
			return errTooMany
		}
		l.ended[batch] += endsOf(&d).sum()
		return nil
	})
}
