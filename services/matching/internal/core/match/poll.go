package match

import (
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
	"github.com/yardmaster-io/yardmaster/shared/heap"
)

// poll is a worker's poll until it is answered.
//
//	waiting (in its tasklist's queue) ──► pending (grabs sent) ──► answered
//	   ▲                                     │ all refused, or their partitions silent
//	   └─────────────────────────────────────┘
type poll struct {
	id     uint64
	list   *list
	max    int
	types  []string // sorted, each once; empty = all
	key    string   // types as one string
	worker string
	// workerID is that of the signs of life of its worker; empty = it sends none.
	workerID string
	replyTo  string
	json     bool
	// since is when it came, until when its time is over.
	since, until time.Duration
	// moved: another partition gave it up. back: this one did, and it came back.
	moved, back bool
	// order is its place in the queue: first come, first served.
	order uint64

	// pending counts the grabs that it waits for, gathered or sent; asked all since it began to wait: each has an equal share in the bytes of its answer.
	pending, asked int
	granted        []grant
	rounds         int
	touched        bool
	// answered: whatever is granted from now on is handed back.
	answered bool
	// lookBy is the call about its list that it waits for where its time is over.
	lookBy uint64

	// line is its place in its tasklist's queue; nil if it is not there.
	line       *pollLine
	prev, next *poll

	// at is when it is looked at, place is that in the heap of these times.
	at    time.Duration
	place int

	// batch and batchAt are where the batch being made names it.
	batch   *batch
	batchAt int
	// by is whose it is.
	by *report.Poller
}

// grant is an attempt that history granted to a poll.
type grant struct {
	batch *batch
	i     int
	// task is the encoded yardv1.PolledTask.
	task []byte
}

func newPoll(l *list, m *Poll, now time.Duration) *poll {
	p := &poll{
		id: m.ID, list: l, max: m.Max, worker: m.Worker, workerID: m.WorkerID, replyTo: m.ReplyTo, json: m.JSON, moved: m.Moved, back: m.Back, since: now, until: now + max(0, m.For),
	}
	if len(m.Types) > 0 {
		p.types = slices.Compact(slices.Sorted(slices.Values(m.Types)))
		p.key = strings.Join(p.types, "\x00")
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

// room is how many tasks it may still be given: what it asked for, as far as it fits
// into an answer of so many bytes.
func (p *poll) room(answerBytesMax int) int {
	fits := max(1, answerBytes(p.json, answerBytesMax)/max(1, p.list.taskBytes))
	return min(p.max, fits) - p.pending - len(p.granted)
}

// answerBytes bounds the tasks of an answer; JSON doubles quotes, and adds the names of fields.
func answerBytes(json bool, most int) int {
	if json {
		return most / 2
	}
	return most
}

// polls are all polls that are not answered, by when they have to be looked at.
type polls struct {
	due heap.Heap[*poll]
	// byInbox has the last one of each inbox.
	byInbox map[string]*poll
	alive   int
	last    uint64
}

func newPolls() polls {
	return polls{byInbox: map[string]*poll{}, due: heap.Heap[*poll]{Less: func(a, b *poll) bool { return a.at < b.at }, Place: func(p *poll) *int { return &p.place }}}
}

func (s *polls) add(p *poll) {
	s.alive++
	s.last++
	p.order, p.at = s.last, p.until
	s.due.Push(p)
	s.byInbox[p.replyTo] = p
}

func (s *polls) remove(p *poll) {
	s.alive--
	s.due.Remove(p)
	if s.byInbox[p.replyTo] == p {
		delete(s.byInbox, p.replyTo)
	}
}

// look has p looked at.
func (s *polls) look(p *poll, at time.Duration) {
	p.at = at
	s.due.Fix(p)
}

// next is the poll to be looked at next.
func (s *polls) next() (*poll, bool) {
	if s.due.Len() == 0 {
		return nil, false
	}
	return s.due.First(), true
}
