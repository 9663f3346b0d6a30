package replica

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/answer"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// The verdicts on events, for packages that know the replica only.
type (
	Verdict = answer.Verdict
	Grant   = answer.Grant
	Answer  = answer.Answer
)

// conclude gives an event its verdict.
func (r *Replica) conclude(h *held, v taskstate.Verdict, fx *Effects) {
	if h.ans != nil && !h.promised {
		r.answers.Conclude(h.ans, h.i, v, &fx.Answers)
	}
}

// BeginTurn returns the steps that go into the turn that is appended now.
func (r *Replica) BeginTurn() []Admission {
	r.answers.Began()
	return r.Gate.BeginTurn()
}
