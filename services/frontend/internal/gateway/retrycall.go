package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

const (
	// callTimeout bounds one question to an owner. An owner that died without a
	// word answers nothing; its successor is there within seconds.
	callTimeout = 2 * time.Second
	// retryCallFirst and retryCallLast are how soon a question is asked again.
	retryCallFirst, retryCallLast = 25 * time.Millisecond, 250 * time.Millisecond
)

// retryCall asks until there is an answer or ctx ends: an owner may be changing
// right now. Where the owner is asked to wait, a question may take until then.
// The error is the last one.
func retryCall[T any](ctx context.Context, wait time.Time, ask func(context.Context) (T, error)) (T, error) {
	for delay := backoff.New(retryCallFirst, retryCallLast); ; {
		once, cancel := context.WithDeadline(ctx, later(time.Now().Add(callTimeout), wait.Add(callTimeout)))
		resp, err := ask(once)
		cancel()
		if err == nil {
			return resp, nil
		}
		if code := fault.CodeOf(err); code != fault.Unavailable && code != fault.ResourceExhausted {
			return resp, err
		}
		delay.Sleep(ctx)
		if ctx.Err() != nil {
			return resp, fault.From(err).After(awayRetryAfter)
		}
	}
}

// everyone asks n owners at once and needs all answers: an incomplete one
// would look like the truth.
func everyone[T any](ctx context.Context, n int, ask func(ctx context.Context, i int) (T, error)) ([]T, error) {
	answers := make([]T, n)
	err := parallel.Each(ctx, n, n, func(ctx context.Context, i int) (err error) {
		answers[i], err = retryCall(ctx, time.Time{}, func(ctx context.Context) (T, error) { return ask(ctx, i) })
		return err
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// ownersPage is what one owner lists, in order; more lies behind it.
type ownersPage[T any] struct {
	all  []T
	more bool
}

// mergePages joins the pages of several owners. The result ends where the first page ends that has more behind it: of what comes later not all
// is known. Join makes one of two that are equal; nil = there are none.
func mergePages[T any](pages []ownersPage[T], compare func(a, b T) int, join func(a, b T) T) (all []T, more bool) {
	var found []T
	var end T
	for _, p := range pages {
		found = append(found, p.all...)
		if n := len(p.all); n > 0 && p.more {
			if last := p.all[n-1]; !more || compare(last, end) < 0 {
				end = last
			}
			more = true
		}
	}
	slices.SortStableFunc(found, compare)
	for _, v := range found {
		last := len(all) - 1
		switch {
		case more && compare(v, end) > 0:
			return all, more
		case join != nil && last >= 0 && compare(all[last], v) == 0:
			all[last] = join(all[last], v)
		default:
			all = append(all, v)
		}
	}
	return all, more
}
