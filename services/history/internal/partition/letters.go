package partition

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/letters"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

const (
	// letterPageMax is how many dead letters are looked at together, letterPagesMax how many pages of a domain a sweep looks at: the rest is for the next one.
	letterPageMax, letterPagesMax = 250, 20
	// letterPageBytes is up to how many bytes of letters are read together.
	letterPageBytes = 4 << 20
	// dropTimeout bounds a batch of deletions.
	dropTimeout = 10 * time.Second
)

// LetterStore is the dead letters of all partitions.
type LetterStore interface {
	// Oldest are the letters of a domain behind a sequence, those that were stored first at first.
	Oldest(ctx context.Context, domain string, after uint64, limit, bytesMax int) (LetterPage, error)
	// Drop deletes letters; one that is not there counts as deleted.
	Drop(ctx context.Context, all []replica.Letter) error
}

// LetterPage is some letters of a domain.
type LetterPage struct {
	Letters []Letter
	// Behind is how many lie behind them, with the marks of letters that are gone: at most so many Marks, if that is Sure.
	Behind, Marks uint64
	Sure          bool
}

// LetterLimits are those of a domain.
type LetterLimits struct {
	Domain string
	letters.Limits
}

// Sweeper deletes the dead letters of a partition that are beyond the limits of their domains. The owner of the partition does it, since it knows which letters redrives
// work on.
type Sweeper struct {
	Owner *Owner
	Store LetterStore
	// Limits are those of the domains that have some.
	Limits func() []LetterLimits
}

// Run sweeps until ctx ends. What fails is tried again by the next sweep.
func (s *Sweeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.Owner.Config.SweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, l := range s.Limits() {
			if err := s.sweep(ctx, l); err != nil && ctx.Err() == nil {
				s.Owner.Logger.Warn("dead letters beyond the limits of a domain were not deleted", "partition", s.Owner.Partition, "domain", l.Domain, "error", err)
			}
		}
	}
}

// sweep goes through the letters of a domain once.
func (s *Sweeper) sweep(ctx context.Context, of LetterLimits) error {
	plan := letters.NewSweep(of.Limits, s.Owner.now().MS)
	for after, page := uint64(0), 0; page < letterPagesMax; page++ {
		read, err := s.Store.Oldest(ctx, of.Domain, after, letterPageMax, letterPageBytes)
		if err != nil {
			return err
		}
		found := read.Letters
		ended := make([]int64, len(found))
		for i, l := range found {
			ended[i], after = l.Record.FinishedAtMs, l.Seq
		}
		over, old, more := plan.Page(ended, read.Behind, read.Marks, read.Sure)
		var tooMany, tooOld []replica.Letter
		for i := range over {
			tooMany = s.own(tooMany, found[i])
		}
		for _, i := range old {
			tooOld = s.own(tooOld, found[i])
		}
		if err := s.drop(ctx, of.Domain, tooMany, tooOld); err != nil || !more {
			return err
		}
	}
	return nil
}

// own adds a letter of this partition.
func (s *Sweeper) own(all []replica.Letter, l Letter) []replica.Letter {
	id := ids.TaskID(l.Record.Id)
	if id.Partition() != s.Owner.Partition {
		return all
	}
	return append(all, letterOf(l.Record, l.Seq))
}

func letterOf(r *logv1.Record, seq uint64) replica.Letter {
	return replica.Letter{Domain: r.Domain, Tasklist: r.Tasklist, ID: ids.TaskID(r.Id), Seq: seq}
}

// drop deletes letters that no redrive works on. From here to the end no redrive reads one, so a letter that is read is there, or is in the hands of this owner: what the log
// brings meanwhile finds it deleted.
func (s *Sweeper) drop(ctx context.Context, domain string, tooMany, tooOld []replica.Letter) error {
	if len(tooMany)+len(tooOld) == 0 {
		return nil
	}
	o := s.Owner
	o.letters.Lock()
	defer o.letters.Unlock()
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	leased := false
	free := func(all []replica.Letter) (some []replica.Letter) {
		for _, l := range all {
			if !o.core.LetterInUse(l.ID) {
				some = append(some, l)
			}
		}
		return some
	}
	if err := o.ask(ctx, func() {
		if leased = o.leased(); leased {
			tooMany, tooOld = free(tooMany), free(tooOld)
		}
	}); err != nil {
		return err
	}
	if !leased {
		return o.unsure()
	}
	if len(tooMany)+len(tooOld) == 0 {
		return nil
	}
	if err := s.Store.Drop(ctx, append(tooMany[:len(tooMany):len(tooMany)], tooOld...)); err != nil {
		return err
	}
	o.Metrics.LettersTooMany.Add(int64(len(tooMany)))
	o.Metrics.LettersTooOld.Add(int64(len(tooOld)))
	o.Logger.Info("dead letters beyond the limits of their domain were deleted", "partition", o.Partition, "domain", domain, "tasks", len(tooMany)+len(tooOld))
	return nil
}
