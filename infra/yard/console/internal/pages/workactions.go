package pages

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/words"
)

// workActions are the forms about workers, schedules and order keys.
func workActions() []page {
	worker, schedule := domainPath+"/workers/{worker}", domainPath+"/schedules/{schedule}"
	byRow := func(frame) bool { return false } // the rows of the page have links to it
	paused := func(f frame) bool { return f.Body.(*yardv1.ScheduleInfo).GetSchedule().GetPaused() }
	return []page{
		action(worker+"/drain", "Drain the worker", login.Operator, previewWorker("The worker gets no new attempts. Those that it runs go on."), drainWorker),
		action(worker+"/stop", "Stop the worker", login.Operator, previewWorker("The worker gets no new attempts, and is asked to end. A worker that has heard of it ends, even if it is resumed."), stopWorker),
		action(worker+"/resume", "Resume the worker", login.Operator, previewWorker("The worker gets new attempts again."), resumeWorker),
		action(schedule+"/pause", "Pause the schedule", login.Operator, previewSchedule("It makes no runs until it is resumed. Times that pass meanwhile are not missed, and have no run.", noteInput), pauseSchedule).
			offeredIf(func(f frame) bool { return !paused(f) }),
		action(schedule+"/resume", "Resume the schedule", login.Operator, previewSchedule("It makes runs again.", noteInput), resumeSchedule).offeredIf(paused),
		action(schedule+"/trigger", "Run the schedule now", login.Operator, previewSchedule("It makes one run now, also if it is paused, and whatever its rule for overlaps says."), triggerSchedule),
		action(domainPath+"/keys/unblock", "Unblock the order key", login.Operator, previewKey("The task that blocks the key gets one more attempt, at once."), unblockKey).offeredIf(byRow),
		action(domainPath+"/keys/skip", "Skip the first task of the order key", login.Operator, previewKey("The first task of the key becomes a dead letter, and the key goes on."), skipKey).offeredIf(byRow),
	}
}

var noteInput = input{Name: "note", Label: "Note, for people (empty: it is kept)", Type: "text"}

// workersSearched is how many workers a preview searches for the one that it is about.
const workersSearched = 1000

func previewWorker(text string) func(*Request) (*preview, error) {
	return func(r *Request) (*preview, error) {
		c, err := r.Client()
		if err != nil {
			return nil, err
		}
		page, err := c.Wire().ListWorkers(r.Context(), &yardv1.ListWorkersRequest{Limit: workersSearched})
		if err != nil {
			return nil, err
		}
		body := &preview{Text: text, Inputs: []input{reasonInput}}
		for _, w := range page.Workers {
			if w.WorkerId != r.PathValue("worker") {
				continue
			}
			body.Facts = []fact{{"Worker", w.Worker}, {"Host", orNone(w.Host)}, {"Version", orNone(w.Version)}, {"Attempts that it runs", words.Count(w.AttemptsCount)}}
			if w.Drain != nil {
				body.Facts = append(body.Facts, fact{"Drained by", orNone(w.Drain.By)}, fact{"Reason", orNone(w.Drain.Reason)})
			}
			for _, a := range w.Attempts {
				body.Sample = append(body.Sample, &yardv1.Task{TaskId: a.TaskId, Type: a.Type, Tasklist: a.Tasklist, State: yardv1.TaskState_TASK_STATE_RUNNING})
			}
		}
		return body, nil
	}
}

// workers is the page that shows the effect.
func (r *Request) workers(err error, text string) (done, error) {
	did, err := unless(err, text)
	did.Path = "/domains/" + r.Domain + "/workers"
	return did, err
}

func drainWorker(r *Request) (done, error) {
	c, err := r.Client()
	if err != nil {
		return r.workers(err, "")
	}
	_, err = c.DrainWorker(r.Context(), r.PathValue("worker"), yard.WorkerDrain{Reason: r.input("reason"), By: r.by()})
	return r.workers(err, "The worker is drained.")
}

func stopWorker(r *Request) (done, error) {
	c, err := r.Client()
	if err != nil {
		return r.workers(err, "")
	}
	_, err = c.StopWorker(r.Context(), r.PathValue("worker"), yard.WorkerDrain{Reason: r.input("reason"), By: r.by()})
	return r.workers(err, "The worker is asked to stop.")
}

func resumeWorker(r *Request) (done, error) {
	c, err := r.Client()
	if err != nil {
		return r.workers(err, "")
	}
	_, err = c.ResumeWorker(r.Context(), r.PathValue("worker"))
	return r.workers(err, "The worker gets new attempts again.")
}

func previewSchedule(text string, inputs ...input) func(*Request) (*preview, error) {
	return func(r *Request) (*preview, error) {
		got, err := showSchedule(r)
		if err != nil {
			return nil, err
		}
		s := got.(*yardv1.ScheduleInfo)
		body := &preview{Text: text, Inputs: inputs, Facts: []fact{{"Type", s.GetSchedule().GetTask().GetType()}, {"Tasklist", s.GetSchedule().GetTask().GetTasklist()}, {"Runs so far", words.Count(s.GetRuns())}}}
		for _, next := range s.GetNextMs()[:min(1, len(s.GetNextMs()))] {
			body.Facts = append(body.Facts, fact{"Next run", words.FromMs(next).Text})
		}
		return body, nil
	}
}

func (r *Request) schedules() (schedules.Schedules, string, error) {
	c, err := r.Client()
	if err != nil {
		return schedules.Schedules{}, "", err
	}
	return schedules.Of(c), r.PathValue("schedule"), nil
}

func pauseSchedule(r *Request) (done, error) {
	all, name, err := r.schedules()
	if err == nil {
		_, err = all.Pause(r.Context(), name, r.input("note"))
	}
	return unless(err, "The schedule is paused.")
}

func resumeSchedule(r *Request) (done, error) {
	all, name, err := r.schedules()
	if err == nil {
		_, err = all.Resume(r.Context(), name, r.input("note"))
	}
	return unless(err, "The schedule makes runs again.")
}

// triggerSchedule sends the id of the form: the engine makes one run, however often the form is sent.
func triggerSchedule(r *Request) (done, error) {
	all, name, err := r.schedules()
	if err == nil {
		_, err = all.Trigger(r.Context(), name, r.input(formInput))
	}
	return unless(err, "The run is submitted some milliseconds later, and is then among the last runs.")
}

func previewKey(text string) func(*Request) (*preview, error) {
	return func(r *Request) (*preview, error) {
		c, err := r.Client()
		if err != nil {
			return nil, err
		}
		got, err := yard.Call[yardv1.GetKeyResponse](r.Context(), c, "keys.get", &yardv1.GetKeyRequest{OrderKey: r.input("order_key")})
		if err != nil {
			return nil, err
		}
		key := got.GetKey()
		body := &preview{
			Text: text, Facts: []fact{{"Order key", key.GetOrderKey()}, {"Tasks that wait behind it", words.Count(key.GetWaiting())}, {"Why it is blocked", orNone(key.GetReason())}},
			Kept: []fact{{"order_key", key.GetOrderKey()}, {"task", key.GetHead().GetTaskId()}}, Inputs: []input{reasonInput},
		}
		if key.GetHead() != nil {
			body.Sample = []*yardv1.Task{key.Head}
		}
		return body, nil
	}
}

// keyOptions name the task that the preview showed, so that no other task of the key is meant.
func (r *Request) keyOptions() yard.KeyOptions {
	return yard.KeyOptions{TaskID: r.input("task"), Reason: r.input("reason"), By: r.by()}
}

func unblockKey(r *Request) (done, error) {
	c, err := r.Client()
	if err == nil {
		_, err = c.UnblockKey(r.Context(), r.input("order_key"), r.keyOptions())
	}
	return unless(err, "The first task of order key "+r.input("order_key")+" gets one more attempt.")
}

func skipKey(r *Request) (done, error) {
	c, err := r.Client()
	if err == nil {
		_, err = c.SkipKey(r.Context(), r.input("order_key"), r.keyOptions())
	}
	return unless(err, "The first task of order key "+r.input("order_key")+" is a dead letter, and the key goes on.")
}
