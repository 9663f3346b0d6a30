package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// takeOver makes this owner the current one and rebuilds the state. The order matters:
//   - The claim of the checkpoint: no other owner can renew its lease any more. Until a lease ends, two owners may serve, so
//     what follows must hold beside the other one.
//   - The snapshot that the claimed checkpoint names.
//   - The fence of the timer store voids what another owner parks from now on.
//   - The tails of the other stores, behind the snapshot.
//   - The claim of the log: no other owner can append an event any more.
//   - The log, from the snapshot up to the claim.
func (o *Owner) takeOver(ctx context.Context) error {
	began := time.Now()
	before, claimedAt, err := o.saver.claim(ctx)
	if err != nil {
		return err
	}
	start := &replica.Start{Epoch: o.epoch, Checkpoint: record.Checkpoint(before), ClaimedAt: claimedAt}
	if start.Snapshot, err = o.loadSnapshot(ctx, &start.Checkpoint.Snapshot); err != nil {
		return fmt.Errorf("load the snapshot: %w", err)
	}
	fence, err := (&logv1.Batch{Fence: true, Epoch: o.epoch, LogVersion: o.LogVersion()}).MarshalVT()
	if err != nil {
		return err
	}
	if err := o.TimerStore.Fence(ctx, fence); err != nil {
		return fmt.Errorf("fence the timer store: %w", err)
	}
	if err := o.tails(ctx, start); err != nil {
		return err
	}
	last, _, err := o.Log.Ends(ctx)
	if err != nil {
		return fmt.Errorf("find the log's end: %w", err)
	}
	if err := start.Check(last, start.TimerSeq, start.ArchiveSeq); err != nil {
		return err
	}
	fullWeight := func(domain string) replica.FullWeight {
		n, shadow := o.FullWeight(domain)
		return replica.FullWeight{PerSecond: float64(n) / float64(o.Partitioning.History), Shadow: shadow}
	}
	o.core = replica.New(replica.Config{
		Shards: o.Partitioning.Matching, WindowTasks: o.Config.WindowTasks, WindowBytes: o.Config.WindowBytes, KeyTasks: o.Config.OrderKeyTasks,
		LeaseFor: pace.Of(replica.LeaseFor), CheckpointEveryMS: pace.Of(o.Config.CheckpointEvery).Milliseconds(), PurgeEveryMS: pace.Of(o.Config.PurgeEvery).Milliseconds(),
		SnapshotBytes: o.Config.SnapshotAfter, SnapshotEveryMS: pace.Of(o.Config.SnapshotEvery).Milliseconds(), Partitions: o.TasklistPartitions, FullWeight: fullWeight, SlowAfter: o.Events.SlowAfter, Paused: o.Paused,
	}, start)
	o.leaseUntil.Store(int64(claimedAt + pace.Of(replica.LeaseFor)))
	upTo, err := o.turns.Claim(ctx, o.epoch)
	if err != nil {
		return err
	}
	for lane, read := range o.core.ReadLevels() {
		o.readers.follow(ctx, Source(lane), read+1)
	}
	o.readQueues()
	_, ends, err := o.Log.Ends(ctx)
	if err != nil {
		return fmt.Errorf("find the end of each lane: %w", err)
	}
	again := replay{o, time.NewTicker(beatEvery), ends}
	defer again.beat.Stop()
	if err := again.run(ctx, start.Snapshot.Seq+1, upTo); err != nil {
		return err
	}
	o.step(replica.Recovered{})
	o.recovered = true
	expectWorkers(o)
	o.Logger.Info("history partition taken over", "partition", o.Partition, "epoch", o.epoch,
		"tasks", o.core.Len(), "duration", time.Since(began).Round(time.Millisecond))
	o.readQueues()
	return nil
}

// loadSnapshot is the snapshot that a takeover begins with; an empty one if there is none.
func (o *Owner) loadSnapshot(ctx context.Context, ref *replica.SnapshotRef) (*replica.Snapshot, error) {
	if ref.Seq == 0 {
		return &replica.Snapshot{}, nil
	}
	chunks, err := o.Snapshots.Load(ctx, SnapshotName{ref.Epoch, ref.Seq}, ref.Chunks)
	if err != nil {
		return nil, err
	}
	s, err := record.NewDecoder().Snapshot(chunks, ref)
	var unknown *logversion.UnknownError
	if errors.As(err, &unknown) {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return s, err
}

// tails reads what the other stores hold behind the snapshot.
func (o *Owner) tails(ctx context.Context, start *replica.Start) (err error) {
	snap := start.Snapshot
	parked := replica.NewParkedTail(snap.TimerEpoch, o.epoch)
	start.Parked, start.Archived = parked.Stays, replica.Ends{}
	if start.TimerSeq, err = o.TimerStore.Last(ctx); err != nil {
		return fmt.Errorf("find the timer store's end: %w", err)
	}
	if start.ArchiveSeq, err = o.Archive.Last(ctx); err != nil {
		return fmt.Errorf("find the archive's end: %w", err)
	}
	err = o.TimerStore.Tail(ctx, snap.TimerSeq, func(data []byte) error {
		var b logv1.Batch
		if err := b.UnmarshalVT(data); err != nil {
			return nil // the timer sets it apart; here it says nothing
		}
		if err := logversion.Check(b.LogVersion); err != nil {
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		record.Parked(parked, &b)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the timer store's tail: %w", err)
	}
	err = o.Archive.Tail(ctx, snap.ArchiveSeq, func(all []replica.Stay) error {
		for _, stay := range all {
			start.Archived.Add(stay)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the archive's tail: %w", err)
	}
	return nil
}
