package validate

import (
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// retry checks what is to happen after a failure.
func retry(path string, r *yardv1.RetryPolicy) error {
	if err := firstError(
		waits(path, r),
		optional(path+"/max_deliveries", r.MaxDeliveries, 1, DeliveriesMax),
		known(path+"/jitter", int32(r.Jitter), yardv1.Jitter_name),
		known(path+"/on_lost", int32(r.OnLost), yardv1.OnLost_name),
		known(path+"/on_timeout", int32(r.OnTimeout), yardv1.OnTimeout_name),
		few(path+"/non_retryable", len(r.NonRetryable)),
		few(path+"/by_error", len(r.ByError)),
	); err != nil {
		return err
	}
	for i, one := range r.NonRetryable {
		path := path + "/non_retryable/" + strconv.Itoa(i)
		if err := errorType(path, one, i, func(j int) string { return r.NonRetryable[j] }); err != nil {
			return err
		}
	}
	for i, one := range r.ByError {
		path := path + "/by_error/" + strconv.Itoa(i)
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

// known checks the number of an enum's value.
func known(path string, value int32, names map[int32]string) error {
	if _, ok := names[value]; !ok {
		return invalid(path, "%d is not known", value)
	}
	return nil
}

func few(path string, n int) error {
	if n > ErrorTypesMax {
		return invalid(path, "holds %d entries, at most %d are allowed", n, ErrorTypesMax)
	}
	return nil
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

// retryRules resolves what a policy has beside numbers: each field is the task's own, else the type's. A default is 0 in the log.
func retryRules(own, typed *yardv1.RetryPolicy, into *logv1.Policy) {
	into.NonRetryable, into.ByError = errorRules(own)
	of, byError := errorRules(typed)
	if len(into.NonRetryable) == 0 {
		into.NonRetryable = of
	}
	if len(into.ByError) == 0 {
		into.ByError = byError
	}
	into.MaxDeliveries = pick(own.GetMaxDeliveries(), typed.GetMaxDeliveries(), 0)
	into.Jitter = chosen(int32(own.GetJitter()), int32(typed.GetJitter()), int32(yardv1.Jitter_JITTER_SLIGHT))
	into.OnLost = chosen(int32(own.GetOnLost()), int32(typed.GetOnLost()), int32(yardv1.OnLost_ON_LOST_RETRY))
	into.OnTimeout = chosen(int32(own.GetOnTimeout()), int32(typed.GetOnTimeout()), int32(yardv1.OnTimeout_ON_TIMEOUT_FAIL))
}

// errorRules are what a policy says of error types, as the log keeps it.
func errorRules(of *yardv1.RetryPolicy) (nonRetryable []string, byError []*logv1.ErrorRetry) {
	for _, r := range of.GetByError() {
		byError = append(byError, &logv1.ErrorRetry{
			ErrorType: r.ErrorType, InitialIntervalMs: r.InitialIntervalMs, Backoff: r.Backoff, MaxIntervalMs: r.MaxIntervalMs, MaxAttempts: r.MaxAttempts,
		})
	}
	return of.GetNonRetryable(), byError
}

// chosen is the first choice that says something; 0 if that is the default.
func chosen(own, typed, otherwise int32) int32 {
	if one := pick(own, typed, otherwise); one != otherwise {
		return one
	}
	return 0
}
