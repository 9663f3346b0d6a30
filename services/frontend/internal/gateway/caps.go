package gateway

import (
	"strconv"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/caps"
)

// queueCaps keeps tasklists near their max_queued, their groups near max_queued_per_group, and order keys near what a key may have.
type queueCaps struct {
	mu   sync.Mutex
	book *caps.Book
	keys caps.Keys
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
			refusal := fault.At(fault.ResourceExhausted, "/tasks/"+strconv.Itoa(i)+"/order_key",
				"the order key %q has %d unfinished tasks: nothing was stored; repeat the request later", r.Order.Key, n).After(queueRetryAfter)
			refusal.Detail = map[string]string{fault.DetailReason: "order_key_full"}
			return &queueFullError{error: refusal}
		}
	}
	return nil
}

func (q *queueCaps) queued(domain, tasklist string) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.book.Queued(caps.Queue{Domain: domain, Tasklist: tasklist})
}

// admit counts s, or refuses it: a tasklist of its due tasks, a group there, or an order key has as many as it may, or its domain is over its quota. Once s is counted it is not
// refused. Without a cap it costs a look at the settings.
func (g *Gateway) admit(s *submission) error {
	if s.held.by != nil {
		return nil
	}
	var of caps.Counts
	records := s.accepted.Records
	if s.ordered() {
		if err := g.queues.fullKey(s.call.Domain, records); err != nil {
			return err
		}
	}
	for from, to := 0, 0; from < len(records); from = to {
		tasklist := records[from].Tasklist
		for to = from; to < len(records) && records[to].Tasklist == tasklist; to++ {
		}
		settings := catalog.Tasklists.Of(g.Catalog, s.call.Domain, tasklist)
		most, each := int64(settings.GetMaxQueued()), int64(settings.GetMaxQueuedPerGroup())
		if most <= 0 && each <= 0 {
			continue
		}
		for i, r := range records[from:to] {
			if r.DueAtMs != 0 {
				continue
			}
			whole := caps.Queue{Domain: s.call.Domain, Tasklist: tasklist}
			if most > 0 {
				of.Add(whole, most, from+i)
			}
			if each > 0 && r.Group != "" {
				of.Add(caps.Queue{Domain: whole.Domain, Tasklist: tasklist, Group: r.Group}, each, from+i)
			}
		}
	}
	if len(of.All) == 0 {
		return s.meter()
	}
	g.queues.mu.Lock()
	full := g.queues.book.Admit(of.All)
	queued := int64(0)
	if full >= 0 {
		queued = g.queues.book.Queued(of.All[full].Of)
	}
	g.queues.mu.Unlock()
	if full >= 0 {
		return &queueFullError{error: of.All[full].Refusal(queued, of.Firsts[full], queueRetryAfter)}
	}
	s.held = held{by: g.queues, all: of.All}
	return s.meter() // refuse takes back what s holds
}

// meter counts s in its domain's quota, once, or refuses it.
func (s *submission) meter() error {
	if err := s.charge.Take(); err != nil {
		return &queueFullError{err, true}
	}
	return nil
}

// queueFullError is a refusal of admit; nothing was stored, and a repeat at once would find the same.
type queueFullError struct {
	error
	quota bool // of the domain
}

// Unwrap is what crosses the wire.
func (e *queueFullError) Unwrap() error { return e.error }

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

// resolveEach ends what a request with unique keys holds: of its tasks those are in the log that parts have still, each in the message of its part.
func (h *held) resolveEach(parts []*part) {
	if h.by == nil {
		return
	}
	h.by.mu.Lock()
	defer h.by.mu.Unlock()
	for _, t := range h.all {
		for _, pt := range parts {
			if n := min(pt.queued(t.Of), t.N); n > 0 && pt.seq > 0 {
				h.by.book.Stored(caps.Tasks{Of: t.Of, N: n}, pt.partition, pt.lane, pt.seq)
				t.N -= n
			}
		}
		h.by.book.Dropped(t)
	}
	h.by = nil
}

// queued counts the tasks of a part that a queue has from now on.
func (pt *part) queued(of caps.Queue) (n int64) {
	for _, r := range pt.accepted.Records {
		if r.DueAtMs == 0 && r.Tasklist == of.Tasklist && (of.Group == "" || r.Group == of.Group) {
			n++
		}
	}
	return n
}

// describeCap puts into a description how full the queue is.
func (g *Gateway) describeCap(c Call, d *yardv1.DescribeTasklistResponse) {
	if d.MaxQueued = catalog.Tasklists.Of(g.Catalog, c.Domain, d.Tasklist).GetMaxQueued(); d.MaxQueued > 0 {
		d.Queued = g.queues.queued(c.Domain, d.Tasklist)
	}
}
