package partition

import (
	"cmp"
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

// saver writes the checkpoint by compare-and-set. The epoch names the owner: it is claimed once, by the one that raises
// it. One write is under way at a time.
type saver struct {
	*base
	revision uint64
	// saves counts the saves of this epoch.
	saves uint64
}

// saveTimeout bounds one write: what is stored later grants no lease any more.
const saveTimeout = replica.LeaseFor

// claim raises the epoch: from here on, other owners' checkpoints are refused. It returns the checkpoint found and when
// the claim was sent.
func (s *saver) claim(ctx context.Context) (before *logv1.Checkpoint, sentAt time.Duration, err error) {
	before, s.revision, err = s.Checkpoints.Load(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("load the checkpoint: %w", err)
	}
	before = cmp.Or(before, &logv1.Checkpoint{})
	if err := logversion.Check(before.LogVersion); err != nil {
		return nil, 0, fmt.Errorf("%w: the checkpoint: %w", ErrUnreadable, err)
	}
	s.epoch = before.Epoch + 1
	cp := record.Checkpoint(before)
	sentAt, err = s.save(ctx, &cp)
	if err != nil {
		return nil, 0, fmt.Errorf("claim epoch %d: %w", s.epoch, err)
	}
	return before, sentAt, nil
}

// save writes cp and returns when the write was sent that stored it. A write that another revision came before may have
// been our own, of which we did not hear.
func (s *saver) save(ctx context.Context, cp *replica.Checkpoint) (sentAt time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	stored := record.StoredCheckpoint(cp)
	s.saves++
	stored.Epoch, stored.Owner, stored.Save = s.epoch, s.Node, s.saves
	stored.LogVersion = s.LogVersion()
	sentAt = s.now().Mono
	next, err := s.Checkpoints.Save(ctx, stored, s.revision)
	if err == nil {
		s.revision = next
		return sentAt, nil
	}
	if !errors.Is(err, ErrTakenOver) {
		return 0, err
	}
	now, revision, loadErr := s.Checkpoints.Load(ctx)
	if loadErr != nil {
		return 0, fmt.Errorf("another checkpoint was stored; it cannot be loaded: %w", loadErr)
	}
	if now == nil || now.Epoch != s.epoch || now.Owner != s.Node {
		return 0, err
	}
	s.revision = revision
	if now.Save != stored.Save {
		return 0, errors.New("an earlier checkpoint of this owner was stored late")
	}
	return sentAt, nil
}

// save begins to write the checkpoint that the replica asks for.
func (o *Owner) save() {
	cp := o.fx.Save
	if cp == nil {
		return
	}
	o.fx.Save = nil
	go func() {
		sentAt, err := o.saver.save(o.work, cp)
		o.post(o.work, func() {
			switch {
			case err == nil:
				o.leaseUntil.Store(int64(sentAt + pace.Of(replica.LeaseFor)))
			case errors.Is(err, ErrTakenOver):
				o.fatal = err
			case o.work.Err() == nil:
				o.Logger.Warn("checkpoint not saved", "partition", o.Partition, "error", err)
			}
			o.step(replica.Saved{OK: err == nil, SentAt: sentAt})
			if err == nil {
				o.turns.Apply()
			}
			o.takeOffered()
		})
	}()
}
