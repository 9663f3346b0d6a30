package pairing

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
)

// taskBytesGuess is the assumed size of a task in an answer until some have been seen.
const taskBytesGuess = 512

// Poll is a worker's poll of a tasklist L until it is answered, with what it was granted.
//
//	waiting (in its tasklist's queue) ──► pending (grabs sent) ──► answered
//	   ▲                                     │ all refused, or their partitions silent
//	   └─────────────────────────────────────┘
type Poll[L, G any] struct {
	// ID is 0 of a poll that stays in its partition.
	ID   uint64
	List L
	Max  int
	// Types are sorted, each once; empty = all.
	Types  []string
	Worker string
	// WorkerID is that of the signs of life of its worker; empty = it sends none.
	WorkerID string
	ReplyTo  string
	JSON     bool
	// Since is when it came, Until when its time is over.
	Since, Until time.Duration
	// Moved: another partition gave it up. Back: this one did, and it came back.
	Moved, Back bool
	// By is whose it is.
	By *report.Poller

	// Pending counts the grabs that it waits for, gathered or sent; Asked all since it began to wait: each has an equal share in the bytes
	// of its answer.
	Pending, Asked int
	Granted        []G
	Rounds         int
	// Answered: whatever is granted from now on is handed back.
	Answered bool
	// LookBy is the call about its list that it waits for if its time is over.
	LookBy uint64

	position[L, G]
}

// position is where a poll stands.
type position[L, G any] struct {
	queue *Queue[L, G]
	// key is its types as one string, order its place in the queue: first come, first served.
	key   string
	order uint64
	// line is its place in its tasklist's queue; nil if it is not there.
	line       *Line[L, G]
	prev, next *Poll[L, G]
	// at is when it is looked at, place is that in the heap of these times.
	at      time.Duration
	place   int
	touched bool
}

// Accept sets the types that a poll accepts; none = all.
func (p *Poll[L, G]) Accept(types []string) {
	if len(types) > 0 {
		p.Types = slices.Compact(slices.Sorted(slices.Values(types)))
		p.key = strings.Join(p.Types, "\x00")
	}
}

// Accepts reports whether a poll accepts a type.
func (p *Poll[L, G]) Accepts(typ string) bool {
	if len(p.Types) == 0 {
		return true
	}
	_, found := slices.BinarySearch(p.Types, typ)
	return found
}

// Room is how many tasks it may still get: what it asked for, as far as it fits into an answer of so many bytes.
func (p *Poll[L, G]) Room(answerBytesMax int) int {
	fits := max(1, AnswerBytes(p.JSON, answerBytesMax)/max(1, p.queue.weight()))
	return min(p.Max, fits) - p.Pending - len(p.Granted)
}

// AnswerBytes bounds the tasks of an answer; JSON doubles quotes, and adds the names of fields.
func AnswerBytes(json bool, most int) int {
	if json {
		return most / 2
	}
	return most
}

// Movable reports whether a poll may go to another partition: it waits for nothing that is under way.
func (p *Poll[L, G]) Movable(now time.Duration) bool {
	return p.line != nil && p.Pending == 0 && len(p.Granted) == 0 && now < p.Until
}

// Line is that of the polls that wait and accept the same types; nil = it does not wait.
func (p *Poll[L, G]) Line() *Line[L, G] { return p.line }

// Before reports whether a poll came before another one.
func (p *Poll[L, G]) Before(o *Poll[L, G]) bool { return p.order < o.order }

// Compare orders polls by when they came.
func Compare[L, G any](a, b *Poll[L, G]) int { return cmp.Compare(a.order, b.order) }

// After reports whether a poll came after the n-th one of the shard.
func (p *Poll[L, G]) After(n uint64) bool { return p.order > n }

// Next is the poll behind it in its line, or nil.
func (p *Poll[L, G]) Next() *Poll[L, G] { return p.next }

// At is when it is looked at.
func (p *Poll[L, G]) At() time.Duration { return p.at }
