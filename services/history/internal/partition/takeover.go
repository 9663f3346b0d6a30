package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// takeOver makes this owner the current one and rebuilds the state. The order matters:
//   - The claim of the checkpoint: no other owner can renew its lease any more. Until a lease ends, two owners may serve, so
//     what follows must hold beside the other one.
//   - The fence of the timer store voids what another owner parks from now on.
//   - The tails of the other stores, behind the checkpoint.
//   - The claim of the log: no other owner can append an event any more.
//   - The log, from the checkpoint up to the claim.
func (o *Owner) takeOver(ctx context.Context) error {
	began := time.Now()
	before, claimedAt, err := o.saver.claim(ctx)
	if err != nil {
		return err
	}
	cp := record.Checkpoint(before)
	o.core = replica.New(replica.Config{
		Shards: o.Shards, WindowTasks: o.Config.WindowTasks, WindowBytes: o.Config.WindowBytes,
		CheckpointEveryMS: o.Config.CheckpointEvery.Milliseconds(), PurgeEveryMS: o.Config.PurgeEvery.Milliseconds(),
		CarryRecords: o.Config.CarryAfter, CarryBytes: carryBytes, Partitions: o.TasklistPartitions,
	}, cp, claimedAt)
	o.leaseUntil.Store(int64(claimedAt + replica.LeaseFor))
	fence, err := (&logv1.Batch{Fence: true, Epoch: o.epoch, LogVersion: o.LogVersion()}).MarshalVT()
	if err != nil {
		return err
	}
	if err := o.TimerStore.Fence(ctx, fence); err != nil {
		return fmt.Errorf("fence the timer store: %w", err)
	}
	recovered, err := o.tails(ctx, cp, before)
	if err != nil {
		return err
	}
	last, ends, err := o.Log.Ends(ctx)
	if err != nil {
		return fmt.Errorf("find the log's end: %w", err)
	}
	if err := cp.Check(last, recovered.TimerSeq, recovered.ArchiveSeq); err != nil {
		return err
	}
	if ends[SourceEvents], err = o.turns.Claim(ctx, o.epoch); err != nil {
		return err
	}
	recovered.Ends = levelsOf(ends)
	if err := o.replay(ctx, cp, ends); err != nil {
		return err
	}
	o.step(recovered)
	o.recovered = true
	o.Logger.Info("history partition taken over", "partition", o.Partition, "epoch", o.epoch,
		"tasks", o.core.Len(), "duration", time.Since(began).Round(time.Millisecond))
	for lane := range ids.Lane(ids.Lanes) {
		o.readers.follow(ctx, Source(lane), cp.Read[lane]+1)
	}
	o.readQueues()
	return nil
}

// tails reads what the other stores hold behind the checkpoint.
func (o *Owner) tails(ctx context.Context, cp replica.Checkpoint, before *logv1.Checkpoint) (in replica.Recovered, err error) {
	parked := replica.NewParkedTail(before.TimerEpoch, o.epoch)
	in = replica.Recovered{Parked: parked.Stays, Archived: replica.Ends{}}
	if in.TimerSeq, err = o.TimerStore.Last(ctx); err != nil {
		return in, fmt.Errorf("find the timer store's end: %w", err)
	}
	if in.ArchiveSeq, err = o.Archive.Last(ctx); err != nil {
		return in, fmt.Errorf("find the archive's end: %w", err)
	}
	err = o.TimerStore.Tail(ctx, cp.TimerSeq, func(data []byte) error {
		var b logv1.Batch
		if err := b.UnmarshalVT(data); err != nil {
			return nil //nolint:nilerr // the timer sets it apart; here it says nothing
		}
		if err := logversion.Check(b.LogVersion); err != nil {
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		if b.Fence {
			parked.Fence(b.Epoch)
		}
		if !parked.Counts(b.Epoch) {
			return nil
		}
		for _, t := range b.Tasks {
			if id, err := ids.TaskIDFromBytes(t.Id); err == nil {
				parked.Stays[replica.Stay{ID: id, Parkings: t.Parkings}] = true
			}
		}
		return nil
	})
	if err != nil {
		return in, fmt.Errorf("read the timer store's tail: %w", err)
	}
	err = o.Archive.Tail(ctx, cp.ArchiveSeq, func(all []replica.Stay) error {
		for _, stay := range all {
			in.Archived.Add(stay)
		}
		return nil
	})
	if err != nil {
		return in, fmt.Errorf("read the archive's tail: %w", err)
	}
	return in, nil
}

// replay steps through the log from the checkpoint to its end, in log order. It keeps the
// lease: what another owner purges meanwhile would be missed.
func (o *Owner) replay(ctx context.Context, cp replica.Checkpoint, ends [Sources]uint64) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all := []stretch{{source: SourceEvents, from: cp.Floor + 1, upTo: ends[SourceEvents]}}
	for i := range cp.Ack {
		all = append(all, stretch{source: Source(i), from: cp.Ack[i] + 1, upTo: min(cp.Read[i], ends[i])})
	}
	for _, q := range cp.Queues {
		all = append(all, stretch{Source(q.Lane), q.Domain, q.Ack + 1, min(q.Read, ends[q.Lane])})
	}
	o.readers.queues.start(cp.Queues)
	merged := make(chan input, readAhead)
	failed := make(chan error, 1)
	go o.readers.merge(ctx, all, merged, failed)
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		open := merged
		if o.offered != nil {
			open = nil
		}
		select {
		case in, more := <-open:
			if !more {
				select {
				case err := <-failed:
					return err
				default:
					return ctx.Err()
				}
			}
			o.take(in)
		case c := <-o.calls:
			c.do()
		case <-beat.C:
			o.step(replica.Tick{})
		case <-ctx.Done():
			return ctx.Err()
		}
		if o.fatal != nil {
			return o.fatal
		}
		o.save()
	}
}
