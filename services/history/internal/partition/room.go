package partition

import (
	"context"
	"sync"
)

// room bounds how many callers ask one store at a time and how many wait for that. Those who
// wait go in order. The last quarter of the places is for domains that have few, so that one
// that asks without end leaves others theirs.
type room struct {
	slots chan struct{}
	max   int

	mu  sync.Mutex
	all int
	of  map[string]int // by domain
}

func newRoom(slots, most int) *room {
	return &room{slots: make(chan struct{}, slots), max: most, of: map[string]int{}}
}

// enter waits for a slot until ctx ends. ErrReaderBusy: there is no place to wait. Who has
// entered calls leave.
func (r *room) enter(ctx context.Context, domain string) (leave func(), err error) {
	if !r.take(domain) {
		return nil, ErrReaderBusy
	}
	select {
	case r.slots <- struct{}{}:
		return func() {
			<-r.slots
			r.giveBack(domain)
		}, nil
	case <-ctx.Done():
		r.giveBack(domain)
		return nil, ctx.Err()
	}
}

func (r *room) take(domain string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	const quarter, few = 4, 16
	if r.all >= r.max || r.all >= r.max-r.max/quarter && r.of[domain] >= max(r.max/few, 1) {
		return false
	}
	r.all++
	r.of[domain]++
	return true
}

func (r *room) giveBack(domain string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all--
	if r.of[domain]--; r.of[domain] == 0 {
		delete(r.of, domain)
	}
}
