package historysim

import "github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"

// The step by which an attempt begins, and those that cost the task one, or would if its worker had got it.
const (
	StepStarted  = taskstate.StepStarted
	StepFailed   = taskstate.StepFailed
	StepTimedOut = taskstate.StepTimedOut
	StepLost     = taskstate.StepLost
)

// NewWorker is who runs an attempt, by name and the id of its signs of life.
func NewWorker(name, id string) *Worker { return taskstate.NewWorker(name, id, 0) }

// NewPath is a path of limits; nil of none.
func NewPath(refs ...string) *Path { return taskstate.NewPath(refs...) }

// Retrigger sends the triggers of all that is ready of a matching shard again, those of one
// domain or of all domains. It returns false if the owner does not serve.
func (o *Owner) Retrigger(domain string, shard int) bool {
	if !o.Live() {
		return false
	}
	o.r.Retrigger(domain, shard, o.host.Now().MS, &o.fx.Effects)
	o.flush()
	return true
}
