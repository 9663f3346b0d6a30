package batches

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// HomeOf is what the core needs of a batch.
func HomeOf(domain string, h *logv1.BatchHome) batch.Home {
	return batch.Home{Name: batch.Name{Domain: domain, ID: h.BatchId, Made: h.CreatedAtMs}, Closed: h.ClosedAtMs != 0, Over: h.EndedAtMs != 0, ExpiresAt: h.ExpiresAtMs}
}

// endOf is a batch that is over.
func endOf(was *logv1.BatchHome, tasks int64, ends batch.Ends, now time.Time, expired bool) *logv1.BatchHome {
	over := was.CloneVT()
	over.EndedAtMs, over.Expired, over.Tasks = now.UnixMilli(), expired, tasks
	if over.ClosedAtMs == 0 {
		over.ClosedAtMs = over.EndedAtMs
	}
	over.Ends = record.StoredEnds(ends)
	if c := over.Callback; c != nil { // what is shown of it stays
		over.Callback = &logv1.Record{Type: c.Type, Tasklist: c.Tasklist}
	}
	return over
}

// callbackOf is the callback of a batch that is over, as a submit of this moment; nil = it has none. Its name is noted with the batch, in the same write.
func callbackOf(over *logv1.BatchHome, callback *logv1.Record, partition int, now time.Time) *logv1.Record {
	if callback == nil {
		return nil
	}
	r := callback.CloneVT()
	id := ids.NewTaskID(now, partition, rand.Uint64())
	r.Id, over.CallbackTaskId = id[:], id[:]
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	r.Headers = append(r.Headers, []*logv1.Header{
		{Name: "yard-batch-id", Value: over.BatchId},
		{Name: "yard-batch-tasks", Value: number(over.Tasks)},
		{Name: "yard-batch-completed", Value: number(over.Ends.Completed)},
		{Name: "yard-batch-dead", Value: number(over.Ends.Dead)},
		{Name: "yard-batch-cancelled", Value: number(over.Ends.Cancelled)},
		{Name: "yard-batch-expired", Value: number(over.Ends.Expired)},
	}...)
	slices.SortFunc(r.Headers, func(a, b *logv1.Header) int { return strings.Compare(a.Name, b.Name) })
	return r
}
