package owners

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
)

const (
	// callTimeout bounds one question to an owner. An owner that died without a
	// word answers nothing; its successor is there within seconds.
	callTimeout = 2 * time.Second
	// retryFirst and retryLast are how soon a question is asked again.
	retryFirst, retryLast = 25 * time.Millisecond, 250 * time.Millisecond
)

// Retry asks until there is an answer or ctx ends: an owner may be changing
// right now. Where the owner is asked to wait, a question may take until then.
// The error is the last one.
func Retry[T any](ctx context.Context, wait time.Time, ask func(context.Context) (T, error)) (T, error) {
	for delay := backoff.New(retryFirst, retryLast); ; {
		once, cancel := context.WithDeadline(ctx, call.Later(time.Now().Add(callTimeout), wait.Add(callTimeout)))
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
			return resp, fault.From(err).After(call.AwayRetryAfter)
		}
	}
}

// Every asks n owners at once and needs all answers: an incomplete one
// would look like the truth.
func Every[T any](ctx context.Context, n int, ask func(ctx context.Context, i int) (T, error)) ([]T, error) {
	answers := make([]T, n)
	err := parallel.Each(ctx, n, n, func(ctx context.Context, i int) (err error) {
		answers[i], err = Retry(ctx, time.Time{}, func(ctx context.Context) (T, error) { return ask(ctx, i) })
		return err
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// Same is Every where all are asked the same.
func Same[Q, A any](ctx context.Context, n int, call func(ctx context.Context, i int, ask Q) (A, error), ask Q) ([]A, error) {
	return Every(ctx, n, func(ctx context.Context, i int) (A, error) { return call(ctx, i, ask) })
}

// Some asks n owners at once, and has an error for each that has not answered within so long.
func Some[T any](ctx context.Context, n int, within time.Duration, ask func(ctx context.Context, i int) (T, error)) ([]T, []error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	all, errs := make([]T, n), make([]error, n)
	_ = parallel.Each(ctx, n, n, func(ctx context.Context, i int) error {
		all[i], errs[i] = Retry(ctx, time.Time{}, func(ctx context.Context) (T, error) { return ask(ctx, i) })
		return nil
	})
	return all, errs
}
