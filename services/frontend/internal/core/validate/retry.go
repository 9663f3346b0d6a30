package validate

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// retry checks what is to happen after a failure; nil says nothing about it.
func retry(path string, r *yardv1.RetryPolicy) error {
	if r == nil {
		return nil
	}
	if err := firstError(
		waits(path, r),
		optional(path+"/max_deliveries", r.MaxDeliveries, 1, DeliveriesMax),
		known(path+"/jitter", int32(r.Jitter), yardv1.Jitter_name),
		known(path+"/on_lost", int32(r.OnLost), yardv1.OnLost_name),
		known(path+"/on_timeout", int32(r.OnTimeout), yardv1.OnTimeout_name),
		few(path+"/non_retryable", len(r.NonRetryable), ErrorTypesMax),
		few(path+"/by_error", len(r.ByError), ErrorTypesMax),
	); err != nil {
		return err
	}
	for i, one := range r.NonRetryable {
		path := at(path+"/non_retryable", i)
		if err := errorType(path, one, i, func(j int) string { return r.NonRetryable[j] }); err != nil {
			return err
		}
	}
	for i, one := range r.ByError {
		path := at(path+"/by_error", i)
		if one == nil {
			return invalid(path, "is missing")
		}
		if err := firstError(
			errorType(path+"/error_type", one.ErrorType, i, func(j int) string { return r.ByError[j].ErrorType }),
			waits(path, one),
		); err != nil {
			return err
		}
	}
	return nil
}

// waiting is what a policy, and what it says of one error type, have in common.
type waiting interface {
	GetMaxAttempts() int32
	GetInitialIntervalMs() int64
	GetBackoff() float64
	GetMaxIntervalMs() int64
}

func waits(path string, r waiting) error {
	if first, most := r.GetInitialIntervalMs(), r.GetMaxIntervalMs(); most > 0 && first > most {
		return invalid(path+"/initial_interval_ms", "is %d, more than max_interval_ms (%d)", first, most)
	}
	return firstError(
		optional(path+"/max_attempts", r.GetMaxAttempts(), 1, AttemptsMax),
		optional(path+"/initial_interval_ms", r.GetInitialIntervalMs(), 1, ms(IntervalMax)),
		optional(path+"/backoff", r.GetBackoff(), 1, BackoffMax),
		optional(path+"/max_interval_ms", r.GetMaxIntervalMs(), 1, ms(IntervalCapMax)),
	)
}

// errorType checks entry i of a list of error types; others returns the entries before it.
func errorType(path, s string, i int, others func(int) string) error {
	if s == "" {
		return invalid(path, "is missing")
	}
	if err := text(path, s, ErrorTypeBytesMax); err != nil {
		return err
	}
	for j := range i {
		if others(j) == s {
			return invalid(path, "%q is there twice", s)
		}
	}
	return nil
}
