package firing

import (
	"context"
	"fmt"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// restReader loads the store: what is due soon before the owner fires, and the rest meanwhile.
type restReader struct{ *Owner }

// loadFirst loads all of the store up to its end, or what is to be known before anything fires; with rest the others are left for loadRest.
func (o restReader) loadFirst(ctx context.Context, earlyFrom, end uint64) (rest bool, err error) {
	load := func(m Stored) error {
		a, err := o.decode(ctx, m)
		if err == nil {
			err = o.arrive(ctx, a)
		}
		return err
	}
	first, rest, err := o.chooseFirst(ctx, earlyFrom, end)
	switch {
	case err != nil:
		return false, err
	case rest:
		return true, o.Store.ReadFirst(ctx, first, end, load)
	}
	return false, o.Store.ReadRange(ctx, 1, end, load)
}

// chooseFirst says which buckets are loaded first. Without ok the cursor does not tell from which sequence on early messages may not have fired, or nearly
// all is due soon.
func (o restReader) chooseFirst(ctx context.Context, earlyFrom, end uint64) (first []int64, ok bool, err error) {
	if earlyFrom == 0 {
		return nil, false, nil
	}
	var early []int64
	err = o.Store.ReadRange(ctx, earlyFrom, end, func(m Stored) error {
		_, index, err := Decode(m)
		if len(index.Early) > 0 {
			early = append(early, m.Bucket)
		}
		if unknownVersion(err) {
			return fmt.Errorf("message %d of the timer store: %w", m.Seq, err)
		}
		return nil // without another error, or loading puts it into the quarantine
	})
	if err != nil {
		return nil, false, err
	}
	buckets, ok, err := o.Store.Buckets(ctx, end)
	if err != nil || !ok {
		return nil, false, err
	}
	first, ok = due.Rest{Table: o.table}.NearFirst(buckets, early, end)
	return first, ok, nil
}

// loadRest loads what was not loaded first, some messages at a time, so that firing goes on.
func (o restReader) loadRest(ctx context.Context, end uint64) error {
	select {
	case <-o.whole:
		return nil
	default:
	}
	var some []arrival
	tasks := 0
	handOver := func() error {
		all := some
		some, tasks = nil, 0
		return o.askNow(ctx, func() { o.takeRest(all) })
	}
	err := o.Store.ReadRange(ctx, 1, end, func(m Stored) error {
		a, err := o.decode(ctx, m)
		if err != nil {
			return err
		}
		a.body = nil
		some = append(some, a)
		if tasks += len(a.index.Tasks) + len(a.index.Early); tasks < loadTasks && len(some) < loadTasks {
			return nil
		}
		return handOver()
	})
	if err == nil {
		err = handOver()
	}
	if err == nil {
		err = o.askNow(ctx, func() {
			due.Rest{Table: o.table}.Whole()
			o.becomeWhole()
		})
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("load the rest: %w", err)
	}
	return nil
}

// takeRest takes messages into the index.
func (o restReader) takeRest(some []arrival) {
	for _, a := range some {
		o.versionRead = max(o.versionRead, a.version)
		o.reportVoid(&a.index, due.Rest{Table: o.table}.Load(a.index))
	}
}

// reportVoid reports tasks of a message that are void.
func (o restReader) reportVoid(m *due.Message, tasks int) {
	if tasks > 0 {
		o.Gauges.Outdated(tasks)
		o.Logger.Warn("tasks are void: the history owner that parked them was replaced", "sequence", m.Seq, "tasks", tasks)
	}
}

// becomeWhole says that all of the store was loaded.
func (o restReader) becomeWhole() {
	o.isWhole = true
	close(o.whole)
	o.report()
	o.Logger.Info("waiting tasks loaded", "tasks", o.table.Len())
}

// askNow is ask for the loading itself.
func (o restReader) askNow(ctx context.Context, do func()) error {
	done := make(chan struct{})
	select {
	case o.asks <- func() { do(); close(done) }:
	case <-o.ended:
		return ErrNotServing
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-o.ended:
		return ErrNotServing
	case <-ctx.Done():
		return ctx.Err()
	}
}
