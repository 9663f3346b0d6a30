package intake

import (
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/caps"
)

// queueRetryAfter is how long a client must wait for a queue at its cap: the owners report what is left of it four times a second.
const queueRetryAfter = time.Second

// queueCaps keeps tasklists near their max_queued, their groups near max_queued_per_group, and order keys near what a key may have.
type queueCaps struct {
	mu   sync.Mutex
	book *caps.Book
	keys caps.Keys
}

// counted is what a submission has counted of tasklists with a cap, until it is answered.
type counted struct {
	by  *queueCaps
	all []caps.Tasks
	// lane and seq are the message that its tasks are in; 0 = none that they were not known to be in before.
	lane ids.Lane
	seq  uint64
}

// report takes in what the owner of a partition says is queued.
func (q *queueCaps) report(load *rpcv1.HistoryLoad) {
	var queued map[caps.Queue]int64
	if n := len(load.Queued) + len(load.QueuedGroups); n > 0 {
		queued = make(map[caps.Queue]int64, n)
	}
	for _, t := range load.Queued {
		queued[caps.Queue{Domain: t.Domain, Tasklist: t.Tasklist}] = t.Tasks
	}
	for _, t := range load.QueuedGroups {
		queued[caps.Queue{Domain: t.Domain, Tasklist: t.Tasklist, Group: t.Group}] = t.Tasks
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.book.Report(int(load.Partition), queued, load.Counted)
	full := make(map[caps.Key]int64, len(load.FullKeys))
	for _, k := range load.FullKeys {
		full[caps.Key{Domain: k.Domain, Name: k.OrderKey}] = k.Tasks
	}
	q.keys.Report(int(load.Partition), full)
}

// fullKey refuses the tasks of a domain if the order key of one is full.
func (q *queueCaps) fullKey(domain string, records []*logv1.Record) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, r := range records {
		if n := q.keys.Full(caps.Key{Domain: domain, Name: r.Order.GetKey()}); n > 0 {
			return caps.KeyRefusal(r.Order.Key, n, i, queueRetryAfter)
		}
	}
	return nil
}

func (q *queueCaps) queued(domain, tasklist string) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.book.Queued(caps.Queue{Domain: domain, Tasklist: tasklist})
}

// resolve ends what s holds: its tasks are in the log, or not as far as is known.
func (h *counted) resolve(stored bool, p int) {
	if h.by == nil {
		return
	}
	h.by.mu.Lock()
	defer h.by.mu.Unlock()
	for _, t := range h.all {
		if stored && h.seq > 0 {
			h.by.book.Stored(t, p, h.lane, h.seq)
		} else {
			h.by.book.Dropped(t)
		}
	}
	h.by = nil
}
