package gateway

import (
	"context"
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

// answers asks n owners at once, and has an error for each that has not answered within topWait.
func answers[T any](ctx context.Context, n int, ask func(ctx context.Context, i int) (T, error)) ([]T, []error) {
	ctx, cancel := context.WithTimeout(ctx, topWait)
	defer cancel()
	all, errs := make([]T, n), make([]error, n)
	_ = parallel.Each(ctx, n, n, func(ctx context.Context, i int) error {
		all[i], errs[i] = retryCall(ctx, time.Time{}, func(ctx context.Context) (T, error) { return ask(ctx, i) })
		return nil
	})
	return all, errs
}
