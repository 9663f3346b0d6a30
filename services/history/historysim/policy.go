package historysim

import "github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"

// What policies are made of.
type (
	Rules     = taskstate.Rules
	ErrorRule = taskstate.ErrorRule
	Jitter    = taskstate.Jitter
	OnLost    = taskstate.OnLost
	OnTimeout = taskstate.OnTimeout
	Step      = taskstate.Step
)

// The choices of a policy.
const (
	JitterFull  = taskstate.JitterFull
	JitterEqual = taskstate.JitterEqual
	JitterNone  = taskstate.JitterNone
	LostFails   = taskstate.LostFails
	LostDies    = taskstate.LostDies
	TimeoutDies = taskstate.TimeoutDies
)

// LostMax is how many grants in a row may be lost.
const LostMax = taskstate.LostMax

// The steps of a grant that was handed back, and of one that was put off; of a task that blocks its order key, of one that was changed, and of
// one that was a dead letter and came back.
const (
	StepHandedBack = taskstate.StepHandedBack
	StepSnoozed    = taskstate.StepSnoozed
	StepBlocked    = taskstate.StepBlocked
	StepUpdated    = taskstate.StepUpdated
	StepRedriven   = taskstate.StepRedriven
	StepUnblocked  = taskstate.StepUnblocked
)
