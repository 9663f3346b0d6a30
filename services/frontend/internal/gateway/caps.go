package gateway

import (
	"strconv"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/caps"
)

// queueCaps keeps tasklists near their max_queued.
type queueCaps struct {
	mu   sync.Mutex
	book *caps.Book
}

// held is what a submission has counted of tasklists with a cap, until it is answered.
type held struct {
	by  *queueCaps
	all []caps.Tasks
	// lane and seq are the message that its tasks are in; 0 = none that they were not known to be in before.
	lane ids.Lane
	seq  uint64
}

// report takes in what the owner of a partition says is queued.
func (q *queueCaps) report(load *rpcv1.HistoryLoad) {
	var queued map[caps.Tasklist]int64
	if len(load.Queued) > 0 {
		queued = make(map[caps.Tasklist]int64, len(load.Queued))
	}
	for _, t := range load.Queued {
		queued[caps.Tasklist{Domain: t.Domain, Name: t.Tasklist}] = t.Tasks
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.book.Report(int(load.Partition), queued, load.Counted)
}

func (q *queueCaps) queued(domain, tasklist string) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.book.Queued(caps.Tasklist{Domain: domain, Name: tasklist})
}

// admit counts s, or refuses it: a tasklist of its due tasks has as many queued as it may. Once s is counted it is not
// refused. Without a cap it costs a look at the settings.
func (g *Gateway) admit(s *submission) error {
	if s.held.by != nil {
		return nil
	}
	var all []caps.Tasks
	var firsts []int // of each, its first task
	records := s.accepted.Records
	for from := 0; from < len(records); {
		of := records[from].Tasklist
		to, first, n := from, -1, int64(0)
		for ; to < len(records) && records[to].Tasklist == of; to++ {
			if records[to].DueAtMs == 0 {
				if n++; first < 0 {
					first = to
				}
			}
		}
		from = to
		most := g.Catalog.Tasklist(s.call.Domain, of).GetMaxQueued()
		if most <= 0 || n == 0 {
			continue
		}
		all, firsts = add(all, firsts, caps.Tasks{Of: caps.Tasklist{Domain: s.call.Domain, Name: of}, N: n, Most: int64(most)}, first)
	}
	if len(all) == 0 {
		return nil
	}
	g.queues.mu.Lock()
	full := g.queues.book.Admit(all)
	queued := int64(0)
	if full >= 0 {
		queued = g.queues.book.Queued(all[full].Of)
	}
	g.queues.mu.Unlock()
	if full >= 0 {
		return queueFull(all[full], queued, firsts[full])
	}
	s.held = held{by: g.queues, all: all}
	return nil
}

// add adds tasks to those of their tasklist.
func add(all []caps.Tasks, firsts []int, t caps.Tasks, first int) (_ []caps.Tasks, _ []int) {
	for i := range all {
		if all[i].Of == t.Of {
			all[i].N += t.N
			return all, firsts
		}
	}
	return append(all, t), append(firsts, first)
}

// queueFullError is a refusal of admit; nothing was stored, and a repeat at once would find the same.
type queueFullError struct{ refusal *fault.Error }

func (e *queueFullError) Error() string { return e.refusal.Error() }

// Unwrap is what crosses the wire.
func (e *queueFullError) Unwrap() error { return e.refusal }

// queueFull refuses tasks, the first of which is in the request at first.
func queueFull(t caps.Tasks, queued int64, first int) error {
	path := "/tasks/" + strconv.Itoa(first) + "/tasklist"
	if t.N > t.Most {
		return &queueFullError{fault.At(fault.ResourceExhausted, path, "the request has %d tasks for the tasklist %q, whose max_queued is %d: nothing was stored; send fewer at once",
			t.N, t.Of.Name, t.Most).After(queueRetryAfter)}
	}
	return &queueFullError{fault.At(fault.ResourceExhausted, path, "the tasklist %q has %d tasks queued, and its max_queued is %d: nothing was stored; repeat the request later",
		t.Of.Name, queued, t.Most).After(queueRetryAfter)}
}

// resolve ends what s holds: its tasks are in the log, or not as far as is known.
func (h *held) resolve(stored bool, p int) {
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

// describeCap puts into a description how full the queue is.
func (g *Gateway) describeCap(c Call, d *yardv1.DescribeTasklistResponse) {
	if d.MaxQueued = g.Catalog.Tasklist(c.Domain, d.Tasklist).GetMaxQueued(); d.MaxQueued > 0 {
		d.Queued = g.queues.queued(c.Domain, d.Tasklist)
	}
}
