// Package batches has the batches of a partition end: it is the keeper of those whose home the partition is (decision 0047).
//
// Owns: when the counts of a batch are read, and what is written when it is over. Never does: count a task, or decide by what it remembers
// alone. On failure: it looks again, some seconds later; another keeper beside it, of an owner that is replaced, may do the same things.
package batches

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

const (
	// looksMax bounds the batches that are looked at at once.
	looksMax = 8
	// lookTimeout bounds a look.
	lookTimeout = 20 * time.Second
	// countsMax bounds the partitions that a look asks at once how many tasks they have.
	countsMax = 16
	// waitingMax bounds what waits for the keeper.
	waitingMax = 1024
)

// Deps is what a keeper works with.
type Deps struct {
	// Partition is the home of its batches, Partitions how many there are.
	Partition, Partitions int
	Store                 Store
	// Hints hands out batches of which more tasks may have ended, until ctx ends; nil = there are none.
	Hints func(ctx context.Context, hint func(batch.Name)) error
	// Now is the server's time.
	Now func() time.Time
	Log *slog.Logger
}

// Keeper has batches end.
type Keeper struct {
	Deps
	core *batch.Keeper
	// known is what was read of the batches that are closed. It belongs to their looks, of which there is one at a time.
	known map[batch.Name]*progress
}

// progress is what is known of a closed batch, by partition. The ends only grow. Counted: no task is missing in the tally.
type progress struct {
	closed  bool
	counted []bool
	tallies []batch.Tally
}

// New makes a keeper.
func New(d Deps) *Keeper {
	return &Keeper{Deps: d, core: batch.NewKeeper(), known: map[batch.Name]*progress{}}
}

// look is one that has ended.
type look struct {
	name     batch.Name
	progress *progress // nil = there is nothing to remember
	gone     bool
}

// Run keeps until ctx ends. An error says that the log holds what cannot be read.
func (k *Keeper) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen, hinted, ended := make(chan batch.Home, waitingMax), make(chan batch.Name, waitingMax), make(chan look)
	failed := make(chan error, 2)
	go func() {
		failed <- k.Store.Follow(ctx, func(h batch.Home) error {
			select {
			case seen <- h:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	if k.Hints != nil {
		go func() {
			failed <- k.Hints(ctx, func(n batch.Name) {
				select {
				case hinted <- n:
				default: // it is looked at anyway
				}
			})
		}()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for looks := 0; ; {
		select {
		case h := <-seen:
			if h.Over {
				delete(k.known, h.Name)
			}
			k.core.Seen(h)
		case n := <-hinted:
			k.core.Hint(n, k.nowMS())
		case l := <-ended:
			looks--
			if l.gone { // the server has forgotten it
				k.core.Seen(batch.Home{Name: l.name, Over: true})
			}
			k.core.Looked(l.name, k.nowMS())
			if delete(k.known, l.name); l.progress != nil && k.core.Knows(l.name) {
				k.known[l.name] = l.progress
			}
		case <-timer.C:
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-ctx.Done():
			return nil
		}
		looks += k.begin(ctx, looksMax-looks, ended)
		wait := time.Hour
		if at, ok := k.core.Next(); ok && looks < looksMax {
			wait = max(time.Duration(at-k.nowMS())*time.Millisecond, time.Millisecond)
		}
		timer.Reset(wait)
	}
}

// begin begins up to so many looks, and returns how many.
func (k *Keeper) begin(ctx context.Context, most int, ended chan<- look) int {
	all := k.core.Take(k.nowMS(), most)
	for _, name := range all {
		before := k.known[name]
		go func() {
			l := k.look(ctx, name, before)
			select {
			case ended <- l:
			case <-ctx.Done():
			}
		}()
	}
	return len(all)
}

func (k *Keeper) nowMS() int64 { return k.Now().UnixMilli() }

// look looks at a batch once, and returns what is worth knowing at the next look.
func (k *Keeper) look(ctx context.Context, name batch.Name, known *progress) look {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	was, err := k.Store.Load(ctx, name)
	if err == nil && was == nil {
		return look{name: name, gone: true}
	}
	if err == nil {
		known, err = k.carry(ctx, name, was, known)
	}
	if err != nil && !errors.Is(err, ErrMoved) && ctx.Err() == nil {
		k.Log.Warn("a batch could not be looked at, trying again", "partition", k.Partition, "domain", name.Domain, "error", err)
	}
	return look{name: name, progress: known}
}

// carry reads what there is of a batch that was loaded, and carries out what follows.
func (k *Keeper) carry(ctx context.Context, name batch.Name, was *Loaded, known *progress) (*progress, error) {
	found := batch.Found{Home: HomeOf(name.Domain, was.Home)}
	if found.Over {
		return nil, nil
	}
	if known == nil {
		known = &progress{counted: make([]bool, k.Partitions), tallies: make([]batch.Tally, k.Partitions)}
	}
	if found.Closed {
		if err := k.read(ctx, name, known, false); err != nil {
			return known, err
		}
	}
	found.Tasks, found.Ends = known.sum()
	found.Counted = !slices.Contains(known.counted, false)
	verdict := found.Conclude(k.nowMS())
	if verdict == batch.Wait {
		return known, nil
	}
	// Nothing joins any more, also if its time is over; what was redriven since it was read may have ended otherwise.
	if err := k.read(ctx, name, known, true); err != nil {
		return known, err
	}
	if found.Tasks, found.Ends = known.sum(); found.Conclude(k.nowMS()) != verdict { // a member has come out of the quarantine
		return known, nil
	}
	over := endOf(was.Home, found.Tasks, found.Ends, k.Now(), verdict == batch.Expire)
	var callback *logv1.Record
	if verdict == batch.Complete {
		callback = callbackOf(over, was.Home.Callback, k.Partition, k.Now())
	}
	switch err := k.Store.End(ctx, was, over, callback); {
	case errors.Is(err, ErrMoved):
		return known, err
	case err != nil: // it may be stored, and no one looks again at a batch that is over
		return known, errors.Join(err, k.forgetIfOver(context.WithoutCancel(ctx), name))
	}
	k.Log.Info("a batch is over", "partition", k.Partition, "domain", name.Domain, "tasks", over.Tasks)
	return nil, k.forget(ctx, name)
}

func (k *Keeper) forgetIfOver(ctx context.Context, name batch.Name) error {
	now, err := k.Store.Load(ctx, name)
	if err != nil || now == nil || now.Home.EndedAtMs == 0 {
		return err
	}
	return k.forget(ctx, name)
}

// forget has all partitions forget a batch. A count that stays expires by itself.
func (k *Keeper) forget(ctx context.Context, name batch.Name) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	for p := range k.Partitions {
		err = errors.Join(err, k.Store.Forget(ctx, name, p))
	}
	return err
}

// read reads what has not ended by what is known, or all. It closes the batch in each partition first.
func (k *Keeper) read(ctx context.Context, name batch.Name, known *progress, all bool) (err error) {
	if !known.closed {
		for p := range known.tallies {
			if err = k.Store.Close(ctx, name, p); err != nil {
				return err
			}
		}
		known.closed = true
	}
	return parallel.Each(ctx, k.Partitions, countsMax, func(ctx context.Context, p int) error {
		tally := &known.tallies[p]
		if known.counted[p] && tally.Total() == tally.Tasks && !all {
			return nil
		}
		found, complete, err := k.Store.Count(ctx, name, p, known.counted[p] && !all)
		if err == nil {
			*tally, known.counted[p] = found, complete
		}
		return err
	})
}

func (p *progress) sum() (tasks int64, ends batch.Ends) {
	for _, tally := range p.tallies {
		tasks += tally.Tasks
		ends = ends.Plus(tally.Ends)
	}
	return tasks, ends
}
