// Package pace says how often a process looks after itself: heartbeats, leases, comparisons, reports.
//
// Owns: one factor for the whole process. It is 1, except in tests in fake time, where the engine and its clients are one process. Nothing there dies
// without the others, so there is nothing to notice; and each such moment costs real time, of which a fake week has many.
//
// Never does: change when a task is due, or how long anything of a task may take.
//
// On failure: it has none.
package pace

import (
	"sync/atomic"
	"time"
)

// slower is the factor, 0 = 1.
var slower atomic.Int64

// Of is how long the process waits that waits for d at its usual pace.
func Of(d time.Duration) time.Duration { return d * time.Duration(max(slower.Load(), 1)) }

// Usual is the opposite of Of: how long the process waits at its usual pace that waits for d.
func Usual(d time.Duration) time.Duration { return d / time.Duration(max(slower.Load(), 1)) }

// Slow has the process wait by times as long, until usual is called. It must not be called side by side with itself.
func Slow(by int) (usual func()) {
	slower.Store(int64(by))
	return func() { slower.Store(0) }
}

// Beats come every so often, at the pace of the process, or at the usual one while that is wanted. They are not safe for concurrent use.
type Beats struct {
	every time.Duration
	last  time.Time
}

// NewBeats returns beats of which the first one comes after every.
func NewBeats(every time.Duration) *Beats { return &Beats{every, time.Now()} }

// In is how long it takes until the next one.
func (b *Beats) In(usual bool) time.Duration {
	every := Of(b.every)
	if usual {
		every = b.every
	}
	return every - time.Since(b.last)
}

// Due reports whether it is time for one. Then the next one follows that.
func (b *Beats) Due(usual bool) bool {
	due := b.In(usual) <= 0
	if due {
		b.last = time.Now()
	}
	return due
}
