package firing

import (
	"context"
	"errors"
	"sync"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// FireEarly has waiting tasks fire now. It may be repeated, also if its outcome is unknown. A superseded owner may
// answer too: it has read the store to its end, and the present owner reads what it stores. Domains fire some tasks each, in turn,
// for a time; those that are left then are to be asked for again.
func (o *Owner) FireEarly(ctx context.Context, all []due.Wanted) (due.Answer, error) {
	if err := o.catchUp(ctx); err != nil {
		return due.Answer{}, err
	}
	var needed []due.Stay
	var answer due.Answer
	far, err := farReader{o}.read(ctx, all)
	if err != nil {
		return due.Answer{}, err
	}
	err = o.ask(ctx, func() {
		for i := range far {
			o.table.Bring(far[i].all)
		}
		needed, answer = o.table.FireEarly(all, o.Now().UnixMilli())
		answer.Coming = append(answer.Coming, farReader{o}.wentFar(all, far)...) // they are asked for again
	})
	if err != nil {
		return due.Answer{}, err
	}
	if o.StorageFull != nil && o.StorageFull() != "" {
		return answer, nil // they are asked for again
	}
	byDomain := map[string][]due.Stay{}
	for _, s := range needed {
		byDomain[s.Group.Domain] = append(byDomain[s.Group.Domain], s)
	}
	short, stop := context.WithTimeout(ctx, o.Config.EarlyFor)
	defer stop()
	errs := make(chan error, len(byDomain))
	var domains sync.WaitGroup
	for domain, stays := range byDomain {
		domains.Go(func() { errs <- o.fireDomain(short, domain, stays) })
	}
	domains.Wait()
	for range byDomain {
		if err := <-errs; err != nil {
			return due.Answer{}, err
		}
	}
	return answer, nil
}

// fireDomain has stays of a domain fire early, some at a time, until ctx ends.
func (o *Owner) fireDomain(ctx context.Context, domain string, all []due.Stay) error {
	for len(all) > 0 {
		n := together(all)
		err := o.earlies.Run(ctx, domain, func() error { return o.fireSome(ctx, all[:n]) })
		switch {
		case ctx.Err() != nil, errors.Is(err, turns.ErrBusy):
			return nil // they are asked for again
		case err != nil:
			return err
		}
		all = all[n:]
	}
	return nil
}

// together is how many of all fire at a time, 1 at least.
func together(all []due.Stay) (n int) {
	bytes, reads := 0, make(map[uint64]bool, earlyReads)
	for ; n < min(len(all), earlyTasks); n++ {
		s := &all[n]
		bytes, reads[s.Seq] = bytes+s.Bytes, true
		if n > 0 && (bytes > earlyBytes || len(reads) > earlyReads) {
			break
		}
	}
	return n
}

// fireSome stores early messages, and waits until what they name is fired.
func (o *Owner) fireSome(ctx context.Context, some []due.Stay) error {
	messages := due.EarlyMessages(some)
	err := parallel.Each(ctx, len(messages), earlyParallel, func(ctx context.Context, i int) error {
		return o.Pruner.Early(ctx, messages[i].Bucket, batch.Early(messages[i], o.LogVersion()))
	})
	if err != nil {
		return err
	}
	for wait := backoff.New(catchUpFirst, catchUpWait); ; wait.Sleep(ctx) {
		left := false
		err := o.ask(ctx, func() {
			for len(some) > 0 && !o.table.Waits(some[0]) {
				some = some[1:]
			}
			left = len(some) > 0
		})
		if err != nil || !left { // after an error left may be set just now
			return err
		}
	}
}
