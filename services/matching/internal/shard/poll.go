package shard

import (
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// poll is a worker's poll until it is answered.
//
//	waiting (in its tasklist's queue) ──► pending (grabs sent) ──► answered
//	   ▲                                     │ all refused
//	   └─────────────────────────────────────┘
type poll struct {
	list    *tasklist
	max     int
	types   []string // sorted; empty = all
	key     string   // types as one string
	worker  string
	replyTo string
	json    bool
	until   time.Time

	// pending counts its grabs, gathered or sent, that are not decided.
	pending int
	granted []grant
	rounds  int
	touched bool
	// answered: whatever is granted from now on is handed back.
	answered bool

	queued     bool
	prev, next *poll
}

// fence identifies one granted attempt in the log.
type fence struct {
	id       ids.TaskID
	version  uint32
	position ids.Position
	nonce    uint64
	domain   *domain
}

// grant is an attempt that history granted to a poll.
type grant struct {
	fence
	// task is the encoded yardv1.PolledTask; nil once it was taken back.
	task []byte
}

func newPoll(list *tasklist, m *rpcv1.Poll) *poll {
	p := &poll{
		list: list, max: int(m.MaxTasks), worker: m.Worker, replyTo: m.ReplyTo, json: m.Json,
		until: time.UnixMilli(m.UntilMs),
	}
	if len(m.Types) > 0 {
		p.types = slices.Sorted(slices.Values(m.Types))
		p.key = strings.Join(p.types, " ")
	}
	return p
}

func (p *poll) accepts(typ string) bool {
	if len(p.types) == 0 {
		return true
	}
	_, found := slices.BinarySearch(p.types, typ)
	return found
}

// pollQueue is the waiting polls of a tasklist, first come first served.
type pollQueue struct {
	first, last *poll
	n           int
}

func (q *pollQueue) pushBack(p *poll) {
	p.queued, p.prev, p.next = true, q.last, nil
	if q.last != nil {
		q.last.next = p
	} else {
		q.first = p
	}
	q.last = p
	q.n++
}

func (q *pollQueue) pushFront(p *poll) {
	p.queued, p.prev, p.next = true, nil, q.first
	if q.first != nil {
		q.first.prev = p
	} else {
		q.last = p
	}
	q.first = p
	q.n++
}

func (q *pollQueue) remove(p *poll) {
	if !p.queued {
		return
	}
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		q.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		q.last = p.prev
	}
	p.queued, p.prev, p.next = false, nil, nil
	q.n--
}

// deadlines is a heap of polls by when they have to be looked at.
type deadlines []due

type due struct {
	at   time.Time
	poll *poll
}

func (h deadlines) Len() int           { return len(h) }
func (h deadlines) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h deadlines) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *deadlines) Push(x any) { *h = append(*h, x.(due)) }

// Pop implements heap.Interface.
func (h *deadlines) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = due{}
	*h = (*h)[:last]
	return d
}

// tasklist is one tasklist partition at its shard.
type tasklist struct {
	table.Tasklist
	domain *domain
	index  table.Index
	polls  pollQueue
	// alive counts polls that are not answered, waiting or pending.
	alive int
	// taskBytes is what a task of it weighs in an answer, on average.
	taskBytes int
	// dirty: in Shard.dirty, to be matched this turn.
	dirty bool
	// putting: something of it goes into the table this turn.
	putting bool
	// hungryAt is when to complain next about an empty table; zero = not empty or
	// nobody waits.
	hungryAt   time.Time
	hungryWait time.Duration
	idleSince  time.Time
}

// weigh notes what the tasks of one answer weighed. It follows growth at once and
// forgets slowly: an answer that does not fit costs more than a small one.
func (l *tasklist) weigh(bytes, tasks int) {
	mean := bytes / tasks
	if mean > l.taskBytes {
		l.taskBytes = mean
	} else {
		l.taskBytes += (mean - l.taskBytes) / 8
	}
}
