// Package signs is the signs of life of one run of a worker.
//
// Owns: what they say, and when they are due: as often as the worker was made to send them while it runs something; at the pace of the process while it
// runs nothing, since its death concerns no task then.
//
// Never does: send one.
//
// On failure: one that is not sent is due again soon. A worker without the right to send them has none.
package signs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
)

// Signs are those of one run of a worker. They are safe for concurrent use.
type Signs struct {
	sign         *yardv1.WorkerAlive
	began        time.Time
	every, again time.Duration
	// said is how often they come, as the last one says.
	said atomic.Int64
	// busy holds a token when a sign was sent because an attempt begins.
	busy chan struct{}
	// off: there are none, so polls do not name the worker.
	off atomic.Bool
}

// New makes the signs of a worker that says this of itself. They come every so often, and again after a while if one was not sent; every 0: there are
// none.
func New(worker *yardv1.WorkerAlive, every, again time.Duration) *Signs {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	worker.WorkerId = hex.EncodeToString(id)
	s := &Signs{sign: worker, began: time.Now(), every: every, again: again, busy: make(chan struct{}, 1)}
	s.off.Store(every == 0)
	return s
}

// ID is what polls name; empty = nothing.
func (s *Signs) ID() string {
	if s.off.Load() {
		return ""
	}
	return s.sign.WorkerId
}

// Off ends the signs.
func (s *Signs) Off() { s.off.Store(true) }

// Next is the next sign of a worker that runs something, or nothing.
func (s *Signs) Next(runs, leaving bool) *yardv1.WorkerAlive {
	every := s.every
	if !runs {
		every = pace.Of(every)
	}
	s.said.Store(int64(every))
	sign := s.sign.CloneVT()
	sign.RunningForMs, sign.EveryMs, sign.Leaving = time.Since(s.began).Milliseconds(), every.Milliseconds(), leaving
	return sign
}

// Begin sends a sign before an attempt begins, if the last one says that they come less often than is usual.
func (s *Signs) Begin(send func() error) {
	if s.off.Load() || time.Duration(s.said.Load()) <= s.every || send() != nil {
		return
	}
	select {
	case s.busy <- struct{}{}:
	default:
	}
}

// Run sends signs until ctx ends, or they are off.
func (s *Signs) Run(ctx context.Context, send func() error) {
	next := time.NewTimer(0)
	defer next.Stop()
	for !s.off.Load() {
		select {
		case <-ctx.Done():
			return
		case <-s.busy:
			next.Reset(s.every)
		case <-next.C:
			if send() == nil {
				next.Reset(time.Duration(s.said.Load()))
			} else {
				next.Reset(s.again)
			}
		}
	}
}
