package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

// replay is how an owner comes to the state of the one before. It keeps the lease meanwhile: what another owner purges would be missed.
type replay struct {
	*Owner
	beat *time.Ticker
	// ends are the last messages of the lanes, as of the claim.
	ends [Sources]uint64
}

// run steps through the turns of the log, and before each through what it has admitted.
func (o *replay) run(ctx context.Context, from, upTo uint64) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	turns, failed := make(chan input, readAhead), make(chan error, 1)
	go func() {
		defer close(turns)
		if err := o.readers.read(ctx, SourceEvents, "", from, upTo, turns); err != nil {
			failed <- err
		}
	}()
	for {
		in, more, err := o.nextOf(ctx, turns)
		switch {
		case err != nil:
			return err
		case !more:
			select {
			case err := <-failed:
				return err
			default:
				return ctx.Err()
			}
		}
		if turn, ok := in.what.(*replica.Turn); ok && turn.Seq > o.core.EventAt() { // the snapshot has taken the steps of others
			for _, step := range turn.Admitted {
				if err := o.readmit(ctx, step); err != nil {
					return err
				}
			}
		}
		if err := o.takeSoon(ctx, in); err != nil {
			return err
		}
	}
}

// readmit takes one step of an owner before.
func (o *replay) readmit(ctx context.Context, step replica.Admission) error {
	if step.Kind != replica.Read {
		o.core.Replay(step)
		o.readQueues()
		return nil
	}
	if step.Place != "" && o.readers.of(step.Queue) == nil {
		o.startQueue(replica.Reading{Queue: step.Queue, From: o.core.ReadLevel(step.Queue) + 1})
	}
	from := o.core.ReadLevel(step.Queue)
	if step.To > max(from, o.ends[step.Lane]) { // who reads on would wait for it
		return fmt.Errorf("%w: message %d of lane %s was admitted and is not in the log: the last one is %d", ErrUnreadable, step.To, step.Lane, o.ends[step.Lane])
	}
	o.core.Replayed()
	for o.core.ReadLevel(step.Queue) < step.To {
		in, _, err := o.nextOf(ctx, o.readers.of(step.Queue))
		if err != nil {
			return err
		}
		if in.seq > step.To {
			return fmt.Errorf("%w: message %d of lane %s was admitted and is not in the log: the next one is %d", ErrUnreadable, step.To, step.Lane, in.seq)
		}
		if err := o.takeSoon(ctx, in); err != nil {
			return err
		}
	}
	if n := o.core.Replayed(); from == step.From && n < step.Messages { // a snapshot may have taken some
		return fmt.Errorf("%w: %d messages up to %d of lane %s were admitted, and %d are in the log", ErrUnreadable, step.Messages, step.To, step.Lane, n)
	}
	return nil
}

// nextOf is the next input of a reader, nil = it waits until the one that is offered is taken; more is false where it
// is closed. Meanwhile the lease is kept.
func (o *replay) nextOf(ctx context.Context, from <-chan input) (in input, more bool, err error) {
	for from != nil || o.offered != nil {
		select {
		case in, more = <-from:
			return in, more, nil
		case err := <-o.readers.failed:
			return in, false, err
		case c := <-o.calls:
			c.do()
		case <-o.beat.C:
			o.step(replica.Tick{})
		case <-ctx.Done():
			return in, false, ctx.Err()
		}
		if o.fatal != nil {
			return in, false, o.fatal
		}
		o.save()
	}
	return in, true, nil
}

// takeSoon steps through an input, once the lease holds.
func (o *replay) takeSoon(ctx context.Context, in input) error {
	o.take(in)
	if o.fatal != nil {
		return o.fatal
	}
	_, _, err := o.nextOf(ctx, nil)
	return err
}
