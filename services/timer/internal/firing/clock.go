package firing

import (
	"context"
	"time"
)

// now is the time to fire by.
func (o *Owner) now() time.Time {
	own := o.Now()
	return o.clock.Now(own, own.Sub(o.began))
}

// learnClock has a few first looks at the server's clock, of which the fastest counts.
func (o *Owner) learnClock(ctx context.Context) error {
	for range clockFirst {
		server, err := o.Store.Time(ctx)
		if err != nil {
			return err
		}
		o.clock.Learn(server, o.Now().Sub(o.began))
	}
	return nil
}

// watchClock asks for the server's clock, every now and then, beside the loop.
func (o *Owner) watchClock(ctx context.Context) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, done := context.WithTimeout(ctx, clockEvery)
		server, err := o.Store.Time(asking)
		since := o.Now().Sub(o.began)
		done()
		if err == nil { // without an answer, the last ones hold
			err = o.ask(ctx, func() { o.clock.Learn(server, since) })
		}
		if err != nil && ctx.Err() == nil {
			o.Logger.Debug("the server's clock is not known anew", "error", err)
		}
	}
}
