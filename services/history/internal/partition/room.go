package partition

import (
	"context"

	"github.com/yardmaster-io/yardmaster/shared/admission"
)

// room bounds how many callers ask one store at a time, and by domain how many wait for that.
// Those who wait go in order.
type room struct {
	slots  chan struct{}
	places *admission.Room
}

func newRoom(slots, most int) *room {
	return &room{slots: make(chan struct{}, slots), places: admission.New(most)}
}

// enter waits for a slot until ctx ends. ErrReaderBusy: there is no place to wait. A caller that has
// entered calls leave.
func (r *room) enter(ctx context.Context, domain string) (leave func(), err error) {
	if !r.places.Enter(domain) {
		return nil, ErrReaderBusy
	}
	select {
	case r.slots <- struct{}{}:
		return func() {
			<-r.slots
			r.places.Leave(domain)
		}, nil
	case <-ctx.Done():
		r.places.Leave(domain)
		return nil, ctx.Err()
	}
}
