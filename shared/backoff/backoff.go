// Package backoff waits between tries.
//
// Owns: delays that double, up to a last one. Never does: decide whether there is another try. On failure: it has none.
package backoff

import (
	"context"
	"time"
)

// Backoff are the delays between tries: the first one, twice that, and so on up to the last one. It is not safe for concurrent use.
type Backoff struct{ first, last, next time.Duration }

// New returns delays that begin at first.
func New(first, last time.Duration) *Backoff { return &Backoff{first, last, first} }

// Next returns the next delay.
func (b *Backoff) Next() time.Duration {
	delay := b.next
	b.next = min(2*delay, b.last)
	return delay
}

// Reset begins at the first delay again.
func (b *Backoff) Reset() { b.next = b.first }

// Sleep waits for the next delay. It reports false if ctx ends first.
func (b *Backoff) Sleep(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Sleep waits for d. It reports false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
