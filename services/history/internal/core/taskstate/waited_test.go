package taskstate

import "testing"

func TestWaited(t *testing.T) {
	submitted, parked, fired := Step{Kind: StepSubmitted, At: 1}, Step{Kind: StepParked, At: 5}, Step{Kind: StepFired, At: 90}
	started, failed := Step{Kind: StepStarted, At: 100}, Step{Kind: StepFailed, At: 40, Message: "no"}
	timedOut := Step{Kind: StepTimedOut, At: 60, Message: "late"}
	delay, backoff := Wait{Since: 5, Until: 95, After: StepParked}, Wait{Since: 40, Until: 95, After: StepFailed, Message: "no"}
	for name, c := range map[string]struct {
		steps []Step
		want  Wait
	}{
		"none":                       {[]Step{submitted, started}, Wait{}},
		"no step at all":             {nil, Wait{}},
		"a delay":                    {[]Step{submitted, parked, fired, started}, delay},
		"a delay, its begin dropped": {[]Step{parked, fired, started}, delay},
		"a delay before":             {[]Step{submitted, parked, fired, started, {Kind: StepHandedBack}, started}, Wait{}},
		"a backoff":                  {[]Step{submitted, started, failed, started}, backoff},
		"a backoff with a cancel":    {[]Step{submitted, started, failed, {Kind: StepCancelRequested}, started}, backoff},
		"a parked backoff":           {[]Step{submitted, started, failed, parked, fired, started}, backoff},
		"after a time-out":           {[]Step{submitted, started, timedOut, started}, Wait{Since: 60, Until: 95, After: StepTimedOut, Message: "late"}},
		"lost":                       {[]Step{submitted, started, {Kind: StepLost}, started}, Wait{}},
		"lost as a failure":          {[]Step{submitted, started, {Kind: StepLost, At: 70, DueAt: 95, Message: "silent"}, started}, Wait{Since: 70, Until: 95, After: StepLost, Message: "silent"}},
		"lost and parked":            {[]Step{submitted, started, {Kind: StepLost, At: 70, DueAt: 95, Message: "silent"}, parked, fired, started}, Wait{Since: 70, Until: 95, After: StepLost, Message: "silent"}},
		"and then over":              {[]Step{submitted, started, failed, started, {Kind: StepCompleted}}, backoff},
	} {
		task := &Task{ReadyAt: 95, Steps: c.steps}
		w, ok := task.Waited()
		if !ok {
			w = Wait{}
		}
		if w != c.want || ok != (c.want != Wait{}) {
			t.Errorf("%s: %+v %t", name, w, ok)
		}
	}
}
