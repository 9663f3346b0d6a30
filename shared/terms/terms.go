// Package terms resolves what holds for the attempts of a task: what the task says itself, else what its type says, else the default.
//
// Owns: that order, the defaults, and which fields follow the type when it changes.
// Never does: check limits, or know which tasks there are.
// On failure: nothing can fail.
package terms

import (
	"cmp"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// The policy of a task if neither it nor its type says anything.
const (
	AttemptsDefault     = 5
	IntervalDefault     = time.Second
	BackoffDefault      = 2.0
	IntervalCapDefault  = 10 * time.Minute
	StartToCloseDefault = 5 * time.Minute
)

// Policy is the effective policy of a task, or of any task of a type if t is nil. Each field is resolved by itself. The type may be nil.
func Policy(t *yardv1.NewTask, of *yardv1.TaskType) *logv1.Policy {
	own, typed := t.GetRetry(), of.GetRetry()
	p := &logv1.Policy{
		MaxAttempts:        cmp.Or(own.GetMaxAttempts(), typed.GetMaxAttempts(), AttemptsDefault),
		InitialIntervalMs:  cmp.Or(own.GetInitialIntervalMs(), typed.GetInitialIntervalMs(), IntervalDefault.Milliseconds()),
		Backoff:            cmp.Or(own.GetBackoff(), typed.GetBackoff(), BackoffDefault),
		MaxIntervalMs:      cmp.Or(own.GetMaxIntervalMs(), typed.GetMaxIntervalMs(), IntervalCapDefault.Milliseconds()),
		StartToCloseMs:     cmp.Or(t.GetStartToCloseMs(), of.GetStartToCloseMs(), StartToCloseDefault.Milliseconds()),
		HeartbeatTimeoutMs: cmp.Or(t.GetHeartbeatTimeoutMs(), of.GetHeartbeatTimeoutMs()),
		OfType:             ofType(t), TypeRevision: of.GetRevision(),
	}
	if own.GetMaxIntervalMs() == 0 { // it follows the first wait
		p.MaxIntervalMs = max(p.MaxIntervalMs, p.InitialIntervalMs)
	}
	rules(own, typed, p)
	return p
}

// ofType is the set of fields that a task does not set itself: bit n is for field n of logv1.Policy.
func ofType(t *yardv1.NewTask) (fields uint32) {
	own := t.GetRetry()
	for n, set := range [...]bool{
		0: true,
		1: own.GetMaxAttempts() != 0, own.GetInitialIntervalMs() != 0, own.GetBackoff() != 0, own.GetMaxIntervalMs() != 0,
		5: t.GetStartToCloseMs() != 0, t.GetHeartbeatTimeoutMs() != 0,
		7: len(own.GetNonRetryable()) > 0, len(own.GetByError()) > 0,
		9: own.GetJitter() != 0, own.GetMaxDeliveries() != 0, own.GetOnLost() != 0, own.GetOnTimeout() != 0,
	} {
		if !set {
			fields |= 1 << n
		}
	}
	return fields
}

// rules resolves what a policy has beside numbers. A default is 0 in the log.
func rules(own, typed *yardv1.RetryPolicy, into *logv1.Policy) {
	into.NonRetryable, into.ByError = ErrorRules(own)
	of, byError := ErrorRules(typed)
	if len(into.NonRetryable) == 0 {
		into.NonRetryable = of
	}
	if len(into.ByError) == 0 {
		into.ByError = byError
	}
	into.MaxDeliveries = cmp.Or(own.GetMaxDeliveries(), typed.GetMaxDeliveries())
	into.Jitter = chosen(int32(own.GetJitter()), int32(typed.GetJitter()), int32(yardv1.Jitter_JITTER_SLIGHT))
	into.OnLost = chosen(int32(own.GetOnLost()), int32(typed.GetOnLost()), int32(yardv1.OnLost_ON_LOST_RETRY))
	into.OnTimeout = chosen(int32(own.GetOnTimeout()), int32(typed.GetOnTimeout()), int32(yardv1.OnTimeout_ON_TIMEOUT_FAIL))
}

// ErrorRules are what a policy says of error types, as the log keeps it.
func ErrorRules(of *yardv1.RetryPolicy) (nonRetryable []string, byError []*logv1.ErrorRetry) {
	for _, r := range of.GetByError() {
		byError = append(byError, &logv1.ErrorRetry{
			ErrorType: r.ErrorType, InitialIntervalMs: r.InitialIntervalMs, Backoff: r.Backoff, MaxIntervalMs: r.MaxIntervalMs, MaxAttempts: r.MaxAttempts,
		})
	}
	return of.GetNonRetryable(), byError
}

// chosen is the first choice that says something; 0 if that is the default.
func chosen(own, typed, otherwise int32) int32 {
	if one := cmp.Or(own, typed, otherwise); one != otherwise {
		return one
	}
	return 0
}
