package taskstate

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Policy is the effective policy of a task and read-only: tasks share it.
type Policy struct {
	// MaxAttempts is how many failures end the task, at least 1.
	MaxAttempts int32
	// InitialIntervalMS, Backoff and MaxIntervalMS shape the wait between attempts.
	InitialIntervalMS int64
	Backoff           float64
	MaxIntervalMS     int64
	// StartToCloseMS bounds an attempt.
	StartToCloseMS int64
	// HeartbeatTimeoutMS bounds its silence; 0 = no heartbeats needed.
	HeartbeatTimeoutMS int64
	// MaxDeliveries is how many grants end the task that were not handed back; 0 = no limit.
	MaxDeliveries int32
	Jitter        Jitter
	OnLost        OnLost
	OnTimeout     OnTimeout
	// Rules are those of error types; nil = none. Equal ones are one, so that policies compare.
	Rules *Rules
	// OfType are the fields that the task does not set itself. They are those of its type as of a revision; 0 = it had no settings.
	OfType       Fields
	TypeRevision int64
}

// Jitter spreads the waits of tasks that failed together (yard.v1.Jitter).
type Jitter uint8

// The jitters. 0 is JitterSlight.
const (
	JitterSlight Jitter = 1
	JitterFull   Jitter = 2
	JitterEqual  Jitter = 3
	JitterNone   Jitter = 4
)

// OnLost is what follows an attempt whose worker fell silent (yard.v1.OnLost).
type OnLost uint8

// The consequence. 0 is LostRetries.
const (
	LostRetries OnLost = 1
	LostFails   OnLost = 2
	LostDies    OnLost = 3
)

// OnTimeout is what follows an attempt that exceeded StartToCloseMS (yard.v1.OnTimeout).
type OnTimeout uint8

// The consequence. 0 is TimeoutFails.
const (
	TimeoutFails OnTimeout = 1
	TimeoutDies  OnTimeout = 2
)

// Rules are what a policy says of failures with certain error types.
type Rules struct {
	// NonRetryable are those whose first failure ends the task.
	NonRetryable []string
	// ByError has one for each error type.
	ByError []ErrorRule
}

// ErrorRule replaces numbers of a policy for failures with one error type; 0 = the policy's.
type ErrorRule struct {
	ErrType           string
	InitialIntervalMS int64
	Backoff           float64
	MaxIntervalMS     int64
	MaxAttempts       int32
}

// Footprint is about how much memory r takes, in bytes.
func (r *Rules) Footprint() int {
	if r == nil {
		return 0
	}
	const name, rule = 16, 48
	n := 0
	for _, errType := range r.NonRetryable {
		n += name + len(errType)
	}
	for i := range r.ByError {
		n += rule + len(r.ByError[i].ErrType)
	}
	return n
}

// The error types of attempts that the engine ends, and of tasks that it ends.
const (
	timeoutType       = "timeout"
	lostType          = "lost"
	maxDeliveriesType = "max_deliveries"
)

// The reasons for which a policy makes a task a dead letter, as its history tells them.
const (
	byNonRetryable = "its error type is non_retryable in its policy"
	byErrorRule    = "it is out of attempts for its error type, by by_error of its policy"
	byOnLost       = "its worker fell silent, and on_lost of its policy is dead"
	byOnTimeout    = "its attempt took too long, and on_timeout of its policy is dead"
	byDeliveries   = "it was given to workers as often as max_deliveries of its policy allows"
)

// forError is p for failures with an error type, and the reason that a task is out of attempts then; "" = no rule's.
func (p *Policy) forError(errType string) (of ErrorRule, reason string) {
	of = ErrorRule{errType, p.InitialIntervalMS, p.Backoff, p.MaxIntervalMS, p.MaxAttempts}
	if p.Rules == nil {
		return of, ""
	}
	for i := range p.Rules.ByError {
		rule := &p.Rules.ByError[i]
		if rule.ErrType != errType {
			continue
		}
		if rule.InitialIntervalMS > 0 {
			of.InitialIntervalMS = rule.InitialIntervalMS
		}
		if rule.Backoff > 0 {
			of.Backoff = rule.Backoff
		}
		of.MaxIntervalMS = cmp.Or(rule.MaxIntervalMS, max(of.MaxIntervalMS, rule.InitialIntervalMS))
		if rule.MaxAttempts > 0 {
			of.MaxAttempts, reason = rule.MaxAttempts, byErrorRule
		}
	}
	return of, reason
}

// nonRetryable tells whether the first failure with an error type ends the task.
func (p *Policy) nonRetryable(errType string) bool {
	return p.Rules != nil && slices.Contains(p.Rules.NonRetryable, errType)
}

// neverAgain tells whether no attempt may follow one that ran out of time: also where its worker may not have received it.
func (p *Policy) neverAgain(timedOut bool) bool {
	if timedOut {
		return p.OnTimeout == TimeoutDies
	}
	return p.OnLost == LostDies
}

// retryDelay is the wait after the latest failure in ms: exponential, with a jitter, never more than its maximum. The jitter is taken from the task's id and the number
// of its failures, so that tasks that failed together do not come back together, and yet every owner computes the same.
func (t *Task) retryDelay() int64 {
	of, _ := t.Policy.forError(t.ErrType)
	d := float64(of.InitialIntervalMS) * math.Pow(of.Backoff, float64(t.Failures-1))
	if limit := float64(of.MaxIntervalMS) / t.Policy.Jitter.factor(1); !(d < limit) { // also NaN and +Inf
		d = limit
	}
	return max(1, int64(d*t.Policy.Jitter.factor(t.unit())))
}

// factor is what a wait is multiplied by; unit is in [0, 1], and the factor of 1 the largest.
func (j Jitter) factor(unit float64) float64 {
	switch j {
	case JitterFull:
		return unit
	case JitterEqual:
		return 0.5 + 0.5*unit
	case JitterNone:
		return 1
	}
	return 0.9 + 0.2*unit
}

// unit is a number in [0, 1) that is as good as random: a hash of the task's id and the number of its failures.
func (t *Task) unit() float64 {
	x := binary.BigEndian.Uint64(t.ID[8:]) + uint64(t.Failures)*0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	return float64(x>>11) / (1 << 53)
}

// spent tells whether t has been given to workers as often as it may.
func (t *Task) spent() bool {
	most := t.Policy.MaxDeliveries
	return most > 0 && int64(t.Grants())-int64(t.HandedBack) >= int64(most)
}

// TypeName names a task type of a domain.
type TypeName struct{ Domain, Type string }

// Terms are what a type says of the attempts of its tasks, as of a revision. The owner of a partition writes them into the log with the events
// that start and end attempts, so that a replay does not depend on the settings. A task takes them with the next such event.
type Terms struct {
	Of TypeName
	// Policy has all fields of the type.
	Policy *Policy
	// before and after are a policy that a task had, and its policy under these terms: most tasks share one.
	before, after *Policy
}

// Fields are fields of a policy: bit n is for field n of logv1.Policy.
type Fields uint16

// The fields.
const (
	FieldMaxAttempts Fields = 2 << iota
	FieldInitialInterval
	FieldBackoff
	FieldMaxInterval
	FieldStartToClose
	FieldHeartbeatTimeout
	FieldNonRetryable
	FieldByError
	FieldJitter
	FieldMaxDeliveries
	FieldOnLost
	FieldOnTimeout
)

// Precedes reports whether a revision of its type is later than the one that p has fields of.
func (p *Policy) Precedes(revision int64) bool { return p.OfType != 0 && p.TypeRevision < revision }

// over is p under terms: its fields of the type are those of the terms.
func (of *Terms) over(p *Policy) *Policy {
	if of == nil || !p.Precedes(of.Policy.TypeRevision) {
		return p
	}
	if of.before == p {
		return of.after
	}
	typed, own := of.Policy, *p
	own.TypeRevision = typed.TypeRevision
	own.MaxAttempts = following(p, FieldMaxAttempts, p.MaxAttempts, typed.MaxAttempts)
	own.InitialIntervalMS = following(p, FieldInitialInterval, p.InitialIntervalMS, typed.InitialIntervalMS)
	own.Backoff = following(p, FieldBackoff, p.Backoff, typed.Backoff)
	own.MaxIntervalMS = following(p, FieldMaxInterval, p.MaxIntervalMS, max(typed.MaxIntervalMS, own.InitialIntervalMS)) // it follows the first wait
	own.StartToCloseMS = following(p, FieldStartToClose, p.StartToCloseMS, typed.StartToCloseMS)
	own.HeartbeatTimeoutMS = following(p, FieldHeartbeatTimeout, p.HeartbeatTimeoutMS, typed.HeartbeatTimeoutMS)
	own.Jitter = following(p, FieldJitter, p.Jitter, typed.Jitter)
	own.MaxDeliveries = following(p, FieldMaxDeliveries, p.MaxDeliveries, typed.MaxDeliveries)
	own.OnLost = following(p, FieldOnLost, p.OnLost, typed.OnLost)
	own.OnTimeout = following(p, FieldOnTimeout, p.OnTimeout, typed.OnTimeout)
	own.Rules = p.Rules.following(p.OfType, typed.Rules)
	of.before, of.after = p, &own
	return of.after
}

// following is one field of p under the terms of its type.
func following[V any](p *Policy, field Fields, own, typed V) V {
	if p.OfType&field != 0 {
		return typed
	}
	return own
}

// following are rules whose lists among some fields are those of the type.
func (r *Rules) following(fields Fields, typed *Rules) *Rules {
	switch fields & (FieldNonRetryable | FieldByError) {
	case 0:
		return r
	case FieldNonRetryable | FieldByError:
		return typed
	}
	var both, of Rules
	if r != nil {
		both = *r
	}
	if typed != nil {
		of = *typed
	}
	if fields&FieldNonRetryable != 0 {
		both.NonRetryable = of.NonRetryable
	} else {
		both.ByError = of.ByError
	}
	if len(both.NonRetryable) == 0 && len(both.ByError) == 0 {
		return nil
	}
	return &both
}

// set are the fields of p that are not 0.
func (p *Policy) set() (fields Fields) {
	mark := func(is bool, field Fields) {
		if is {
			fields |= field
		}
	}
	mark(p.MaxAttempts != 0, FieldMaxAttempts)
	mark(p.InitialIntervalMS != 0, FieldInitialInterval)
	mark(p.Backoff != 0, FieldBackoff)
	mark(p.MaxIntervalMS != 0, FieldMaxInterval)
	mark(p.StartToCloseMS != 0, FieldStartToClose)
	mark(p.HeartbeatTimeoutMS != 0, FieldHeartbeatTimeout)
	mark(p.Jitter != 0, FieldJitter)
	mark(p.MaxDeliveries != 0, FieldMaxDeliveries)
	mark(p.OnLost != 0, FieldOnLost)
	mark(p.OnTimeout != 0, FieldOnTimeout)
	mark(p.Rules != nil && len(p.Rules.NonRetryable) > 0, FieldNonRetryable)
	mark(p.Rules != nil && len(p.Rules.ByError) > 0, FieldByError)
	return fields
}
