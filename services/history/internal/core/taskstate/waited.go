package taskstate

// Wait is a time in which a task was not to run.
type Wait struct {
	// Since and Until are Unix ms.
	Since, Until int64
	// After is the step after which it came: StepFailed, StepTimedOut, or StepLost where that counts as a failure; StepParked where it was for
	// the time that the task's submit had asked for.
	After StepKind
	// Message is the failure's.
	Message string
}

// Waited is the wait that was over when t became ready for its current attempt; ok is false if there was none.
func (t *Task) Waited() (w Wait, ok bool) {
	i := len(t.Steps) - 1
	for i >= 0 && t.Steps[i].Kind != StepStarted {
		i--
	}
	w.Until = t.ReadyAt
	for i--; i >= 0; i-- {
		switch s := &t.Steps[i]; s.Kind {
		case StepFired, StepCancelRequested, StepUpdated:
		case StepParked: // a failure may have led to it
			w.Since, w.After = s.At, s.Kind
		case StepFailed, StepTimedOut, StepLost:
			if s.Kind == StepLost && s.DueAt == 0 { // it was ready at once
				return w, w.After != 0
			}
			return Wait{Since: s.At, Until: w.Until, After: s.Kind, Message: s.Message}, true
		default:
			return w, w.After != 0
		}
	}
	return w, w.After != 0
}
