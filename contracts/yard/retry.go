package yard

import (
	"encoding"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// RetryPolicy says what happens after a failed attempt. A zero field takes the task
// type's value, then the default given here; so does an empty list.
type RetryPolicy struct {
	// MaxAttempts is how many failures make the task a dead letter, 1..10000.
	// Default 5; 1 = no retry.
	MaxAttempts int
	// InitialInterval is the wait after the first failure, 1 ms to 1 day. Default 1 s.
	InitialInterval time.Duration
	// Backoff is the factor by which each further wait is longer, 1..100. Default 2.
	Backoff float64
	// MaxInterval is the longest wait, 1 ms to 30 days. Default 10 min.
	MaxInterval time.Duration
	// NonRetryable are the error types (ErrorType) of failures that make the task a dead letter at once, also where the handler asked for a
	// delay; "timeout" and "lost" are those of attempts that the engine ended. At most 16, of 1..128 bytes. Default none.
	NonRetryable []string
	// ByError has other numbers for failures of one error type; at most 16. Default none.
	ByError []ErrorRetry
	// Jitter spreads the waits of tasks that failed together. Default JitterSlight.
	Jitter Jitter
	// MaxDeliveries is how many times the task is given to a worker until it is a dead letter, however the attempts ended,
	// 1..100000. One that was handed back does not count. Default: no such limit.
	MaxDeliveries int
	// OnLost is what follows when the worker sends no more heartbeats; it needs a HeartbeatTimeout. Default OnLostRetry.
	OnLost OnLost
	// OnTimeout is what follows when an attempt exceeds StartToClose. Default OnTimeoutFail.
	OnTimeout OnTimeout
}

// ErrorRetry is what a policy has instead for failures of one error type. A zero field takes the policy's value. MaxAttempts and the
// waits go by all failures of the task, not only by those of this type.
type ErrorRetry struct {
	// ErrorType is the error type of the failure, 1..128 bytes; required.
	ErrorType string
	// InitialInterval, Backoff, MaxInterval and MaxAttempts are as in RetryPolicy.
	InitialInterval time.Duration
	Backoff         float64
	MaxInterval     time.Duration
	MaxAttempts     int
}

// Jitter spreads the waits of tasks that failed together.
type Jitter string

// The jitters.
const (
	// JitterSlight: within a tenth of the wait, more or less.
	JitterSlight Jitter = "slight"
	// JitterFull: anything from 1 ms to the wait.
	JitterFull Jitter = "full"
	// JitterEqual: anything from half the wait to the wait.
	JitterEqual Jitter = "equal"
	// JitterNone: exactly the wait.
	JitterNone Jitter = "none"
)

// OnLost is what follows an attempt whose worker sends no more heartbeats.
type OnLost string

// The actions.
const (
	// OnLostRetry: the task is ready again at once, and no failure is counted; the 20th in a row makes it a dead letter.
	OnLostRetry OnLost = "retry"
	// OnLostFail: it counts as a failure, with the error type "lost".
	OnLostFail OnLost = "fail"
	// OnLostDead: the task is a dead letter. For work that must not be done twice.
	OnLostDead OnLost = "dead"
)

// OnTimeout is what follows an attempt that took too long.
type OnTimeout string

// The actions.
const (
	// OnTimeoutFail: it counts as a failure, with the error type "timeout".
	OnTimeoutFail OnTimeout = "fail"
	// OnTimeoutDead: the task is a dead letter.
	OnTimeoutDead OnTimeout = "dead"
)

func (p *RetryPolicy) wire() *yardv1.RetryPolicy {
	if p == nil {
		return nil
	}
	w := &yardv1.RetryPolicy{
		MaxAttempts:       int32Of(p.MaxAttempts),
		InitialIntervalMs: milliseconds(p.InitialInterval),
		Backoff:           p.Backoff,
		MaxIntervalMs:     milliseconds(p.MaxInterval),
		NonRetryable:      p.NonRetryable,
		Jitter:            numberOf[yardv1.Jitter](p.Jitter),
		MaxDeliveries:     int32Of(p.MaxDeliveries),
		OnLost:            numberOf[yardv1.OnLost](p.OnLost),
		OnTimeout:         numberOf[yardv1.OnTimeout](p.OnTimeout),
	}
	for _, e := range p.ByError {
		w.ByError = append(w.ByError, &yardv1.ErrorRetry{
			ErrorType: e.ErrorType, InitialIntervalMs: milliseconds(e.InitialInterval), Backoff: e.Backoff,
			MaxIntervalMs: milliseconds(e.MaxInterval), MaxAttempts: int32Of(e.MaxAttempts),
		})
	}
	return w
}

// numberOf is the number of an enum's value by its name; -1, which the engine refuses, of a name that is not known.
func numberOf[E ~int32, P interface {
	*E
	encoding.TextUnmarshaler
}, S ~string](name S) (number E) {
	if name != "" && P(&number).UnmarshalText([]byte(name)) != nil {
		return -1
	}
	return number
}

// RetryPolicyOf is a policy that the API wrote.
func RetryPolicyOf(w *yardv1.RetryPolicy) *RetryPolicy {
	if w == nil {
		return nil
	}
	p := &RetryPolicy{
		MaxAttempts: int(w.MaxAttempts), InitialInterval: milliTime(w.InitialIntervalMs), Backoff: w.Backoff, MaxInterval: milliTime(w.MaxIntervalMs),
		NonRetryable: w.NonRetryable, Jitter: Jitter(w.Jitter.Name()), MaxDeliveries: int(w.MaxDeliveries),
		OnLost: OnLost(w.OnLost.Name()), OnTimeout: OnTimeout(w.OnTimeout.Name()),
	}
	for _, e := range w.ByError {
		p.ByError = append(p.ByError, ErrorRetry{
			ErrorType: e.GetErrorType(), InitialInterval: milliTime(e.GetInitialIntervalMs()), Backoff: e.GetBackoff(),
			MaxInterval: milliTime(e.GetMaxIntervalMs()), MaxAttempts: int(e.GetMaxAttempts()),
		})
	}
	return p
}
