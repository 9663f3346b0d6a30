// Package window keeps account of what history holds in memory: for each
// submit lane how far it is read and how far it is finished, and how far back
// in the events an owner must start to know all that is active.
//
// Owns: read level, ack level and event floor of a lane. Never does: read the
// log or decide when to read on. On failure: marking something done that was
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
	// floor: the events up to here concern no task of this message nor of a later one.
	floor uint64
}

// Lane is the account of one submit lane: the seed of a virtual queue.
type Lane struct {
	// read is the sequence of the last message read.
	read uint64
	// open holds the messages from the first unfinished one on, in log order;
	// finished ones in between stay until they are at the front.
	open []message
	// active counts the tasks read and not done.
	active int
}

// NewLane starts an account at the ack level of a checkpoint.
func NewLane(ack uint64) *Lane { return &Lane{read: ack} }

// Read notes a message of n tasks, none of which the events up to floor concern: those
// applied before it was read, but for a cancel that was early. Messages come in log order.
func (l *Lane) Read(seq uint64, n int, floor uint64) {
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
	l.open = append(l.open, message{seq: seq, left: n, floor: floor})
}

// Done notes that one task of the message at seq needs the log no more: it is
// archived, parked or carried on.
func (l *Lane) Done(seq uint64) {
	i := sort.Search(len(l.open), func(i int) bool { return l.open[i].seq >= seq })
	if i == len(l.open) || l.open[i].seq != seq || l.open[i].left == 0 {
		panic(fmt.Sprintf("window: task of message %d done twice, or never read", seq))
	}
	l.open[i].left--
	l.active--
	front := 0
	for front < len(l.open) && l.open[front].left == 0 {
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

// OldestOpen is the sequence of the oldest unfinished message; ok is false
// where there is none.
func (l *Lane) OldestOpen() (seq uint64, ok bool) {
	if len(l.open) == 0 {
		return 0, false
	}
	return l.open[0].seq, true
}

// Active is how many tasks are read and not done.
func (l *Lane) Active() int { return l.active }
