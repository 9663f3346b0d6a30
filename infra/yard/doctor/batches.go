package doctor

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Batches (decision 0047): the home record says whether a batch is over, and how its tasks ended.

// batchLate is how long a batch may stay though it has expired.
const batchLate = 10 * time.Minute

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
	p.scanned.Batches++
	switch ended := h.Ends.GetCompleted() + h.Ends.GetDead() + h.Ends.GetCancelled() + h.Ends.GetExpired(); {
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
