// Package window keeps account of what history holds in memory: for each
// submit lane how far it is read and how far it is finished, and how far back
// in the events an owner must start to know all that is active.
//
// Owns: read level, ack level and event floor of a lane, or of a domain that lags behind one.
// Never does: read the log or decide when to read on. On failure: marking something done that was
// never read, or twice, is a defect of the caller and panics.
package window

import (
	"fmt"
	"sort"
)

// message is one submit message of which not all tasks are done.
type message struct {
	seq  uint64
	left int
	// tasks and bytes are what a takeover reads again with it.
	tasks, bytes int
	// floor: the events up to here concern no task of this message nor of a later one.
	floor uint64
	// domain is whose message it is; "" where domains share it.
	domain string
}

// Lane is the account of one submit lane, or of one domain's messages of it.
type Lane struct {
	// read is the sequence of the last message read.
	read uint64
	// open holds the messages from the first unfinished one on, in log order;
	// finished ones in between stay until they are at the front.
	open []message
	// active counts the tasks read and not done.
	active int
	// tasks and bytes are the sums over open.
	tasks, bytes int
}

// NewLane starts an account at the ack level of a checkpoint.
func NewLane(ack uint64) *Lane { return &Lane{read: ack} }

// Read notes a message of n tasks and so many bytes, none of which the events up to floor
// concern: those applied before it was read, but for a cancel that was early. Messages come
// in log order. Domain is whose message it is, "" where domains share it.
func (l *Lane) Read(seq uint64, n, bytes int, floor uint64, domain string) {
	if seq <= l.read {
		panic(fmt.Sprintf("window: message %d read after %d", seq, l.read))
	}
	l.read = seq
	l.active += n
	if n == 0 {
		return
	}
	// The oldest message's floor stands for all: an earlier one must not be above it.
	for i := len(l.open) - 1; i >= 0 && l.open[i].floor > floor; i-- {
		l.open[i].floor = floor
	}
	l.open = append(l.open, message{seq: seq, left: n, tasks: n, bytes: bytes, floor: floor, domain: domain})
	l.tasks += n
	l.bytes += bytes
}

// Skip notes that nothing of this lane is left between the read level and seq.
func (l *Lane) Skip(seq uint64) { l.read = max(l.read, seq) }

// Done notes that one task of the message at seq needs the log no more: it is
// archived, parked or carried on.
func (l *Lane) Done(seq uint64) {
	i := l.find(seq)
	if i < 0 || l.open[i].left == 0 {
		panic(fmt.Sprintf("window: task of message %d done twice, or never read", seq))
	}
	l.open[i].left--
	l.active--
	l.shift()
}

// shift lets go of the finished messages at the front.
func (l *Lane) shift() {
	front := 0
	for front < len(l.open) && l.open[front].left == 0 {
		l.tasks -= l.open[front].tasks
		l.bytes -= l.open[front].bytes
		front++
	}
	if front == 0 {
		return
	}
	l.open = l.open[front:]
	if len(l.open) == 0 {
		l.open = nil // let the array go
	}
}

// Split moves the messages of a domain into an account of their own, which is read as far as this one.
// What is read of the domain up to either account's ack level is done.
func (l *Lane) Split(domain string) *Lane {
	own := &Lane{read: l.read}
	kept := l.open[:0]
	for _, m := range l.open {
		if m.domain != domain {
			kept = append(kept, m)
			continue
		}
		own.open = append(own.open, m)
		own.active += m.left
		own.tasks += m.tasks
		own.bytes += m.bytes
	}
	l.active -= own.active
	l.tasks -= own.tasks
	l.bytes -= own.bytes
	clear(l.open[len(kept):])
	l.open = kept
	l.shift()
	own.shift()
	return own
}

// find is the index of an open message, or -1.
func (l *Lane) find(seq uint64) int {
	i := sort.Search(len(l.open), func(i int) bool { return l.open[i].seq >= seq })
	if i == len(l.open) || l.open[i].seq != seq {
		return -1
	}
	return i
}

// ReadLevel is the sequence of the last message read.
func (l *Lane) ReadLevel() uint64 { return l.read }

// AckLevel is the sequence up to which every task is done.
func (l *Lane) AckLevel() uint64 {
	if len(l.open) == 0 {
		return l.read
	}
	return l.open[0].seq - 1
}

// Floor is the lowest event floor of all unfinished messages; ok is false where
// nothing is active, so that this lane pins no event.
func (l *Lane) Floor() (seq uint64, ok bool) {
	if len(l.open) == 0 {
		return 0, false
	}
	return l.open[0].floor, true
}

// Span is what a takeover would read again: the tasks and bytes of all messages from the
// first unfinished one on.
func (l *Lane) Span() (tasks, bytes int) { return l.tasks, l.bytes }

// FloorOf is the floor of an open message; ok is false where seq is none.
func (l *Lane) FloorOf(seq uint64) (floor uint64, ok bool) {
	i := l.find(seq)
	if i < 0 {
		return 0, false
	}
	return l.open[i].floor, true
}

// Half is the sequence below which half of the span lies: once the tasks below it are
// rewritten elsewhere, the lane lets go of as much.
func (l *Lane) Half() uint64 {
	tasks, bytes := 0, 0
	for i := range l.open {
		if 2*tasks >= l.tasks || 2*bytes >= l.bytes {
			return l.open[i].seq
		}
		tasks += l.open[i].tasks
		bytes += l.open[i].bytes
	}
	return l.read + 1
}

// Active is how many tasks are read and not done.
func (l *Lane) Active() int { return l.active }
