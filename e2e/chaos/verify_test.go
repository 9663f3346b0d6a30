package chaos_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// offencesMax is how many offences a failed test prints.
	offencesMax = 20
	// askers is how many tasks are asked for at once.
	askers = 16
)

// verify stops the load and compares what was seen with what the engine says:
// every accepted task is finished, exactly once, as its kind wants; nothing ran
// that was not accepted; no limit was exceeded; no slot is left booked. It returns the tasks by key.
func (l *load) verify() map[string]*yardv1.Task {
	l.t.Helper()
	l.stopProducers()
	l.producers.Wait()
	tasks := l.finished()
	l.slotsFree()
	l.stopWorkers()
	l.workers.Wait()
	l.cluster.CheckAll()

	offences := slices.Concat(l.finishedOnce(tasks), l.ranOnlyAccepted(), l.limitHeld(tasks))
	for len(l.failures) > 0 {
		offences = append(offences, (<-l.failures).Error())
	}
	for _, o := range offences[:min(len(offences), offencesMax)] {
		l.t.Error(o)
	}
	if n := len(offences) - offencesMax; n > 0 {
		l.t.Errorf("and %d more", n)
	}
	l.t.Logf("in all: accepted %d, refused %d, unsure %d; %d attempts", l.count(accepted), l.count(refused), l.count(unsure), len(l.attempts))
	return tasks
}

// finished waits until the engine says of every accepted task that it is finished.
func (l *load) finished() map[string]*yardv1.Task {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var open []*order
	l.mu.Lock()
	for _, o := range l.orders {
		if o.fate == accepted {
			open = append(open, o)
		}
	}
	l.mu.Unlock()
	jobs := make(chan *order, len(open))
	for _, o := range open {
		jobs <- o
	}
	close(jobs)
	var mu sync.Mutex
	tasks := map[string]*yardv1.Task{}
	var failed []error
	var all sync.WaitGroup
	for range askers {
		all.Go(func() {
			for o := range jobs {
				task, err := l.awaitFinished(ctx, o.id)
				mu.Lock()
				tasks[o.key] = task
				if err != nil {
					failed = append(failed, fmt.Errorf("%s task %s (%s): %w", o.kind, o.key, o.id, err))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(failed) > 0 {
		l.t.Fatalf("%d of %d accepted tasks are not finished:\n%v", len(failed), len(open), errors.Join(failed[:min(len(failed), offencesMax)]...))
	}
	return tasks
}

func (l *load) awaitFinished(ctx context.Context, id string) (*yardv1.Task, error) {
	for {
		task, err := l.client.Wire().Get(ctx, id)
		if err == nil && task.State.Finished() {
			return task, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("state %v, error %w; events %v", task.GetState(), cmp.Or(err, ctx.Err()), task.GetEvents())
		}
		wait(ctx, 100*time.Millisecond)
	}
}

// slotsFree waits until nothing holds a slot any more.
func (l *load) slotsFree() {
	l.t.Helper()
	testkit.Eventually(l.t, within, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		tt, err := l.client.GetType(ctx, string(capped))
		if err == nil && tt.SlotsInUse > 0 {
			err = fmt.Errorf("%d slots are booked and nothing runs", tt.SlotsInUse)
		}
		return err
	})
}

// finishedOnce: each task ended once, as its kind does, with the result of one
// handler that succeeded, and that one's completion is the only confirmed one.
func (l *load) finishedOnce(tasks map[string]*yardv1.Task) []string {
	var offences []string
	runs := map[string][]*attempt{}
	for _, a := range l.attempts {
		runs[a.key] = append(runs[a.key], a)
	}
	for key, task := range tasks {
		o := l.orders[key]
		offend := func(format string, args ...any) {
			offences = append(offences, fmt.Sprintf("%s task %s (%s): %s; events %v", o.kind, key, o.id, fmt.Sprintf(format, args...), task.Events))
		}
		want, end := yardv1.TaskState_TASK_STATE_COMPLETED, yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED
		if o.kind == doomed {
			want, end = yardv1.TaskState_TASK_STATE_DEAD, yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD
		}
		if task.State != want {
			offend("state %v, want %v", task.State, want)
			continue
		}
		if n := countEvents(task, end); n != 1 {
			offend("%d events %v, want 1", n, end)
		}
		if o.kind == doomed {
			continue
		}
		var result string
		if err := json.Unmarshal(task.Result.GetData(), &result); err != nil {
			offend("result: %v", err)
		}
		confirmed := 0
		found := false
		for _, a := range runs[key] {
			found = found || a.succeeded && a.result == result
			if a.confirmed {
				confirmed++
				if a.result != result {
					offend("the completion of %s was confirmed, but the result is %s", a.result, result)
				}
			}
		}
		if !found {
			offend("result %q is of no run that succeeded", result)
		}
		if confirmed > 1 {
			offend("%d completions were confirmed", confirmed)
		}
	}
	return offences
}

func countEvents(task *yardv1.Task, k yardv1.TaskEventKind) int {
	n := 0
	for _, e := range task.Events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// ranOnlyAccepted: no task ran under two ids, and none that was refused.
func (l *load) ranOnlyAccepted() []string {
	var offences []string
	ids := map[string]string{}
	for _, a := range l.attempts {
		switch o := l.orders[a.key]; {
		case o == nil:
			offences = append(offences, fmt.Sprintf("%s ran and was never submitted", a.key))
		case o.fate == refused:
			offences = append(offences, fmt.Sprintf("%s ran as %s, but its submitter was informed that it was not accepted", a.key, a.id))
		case o.fate == accepted && o.id != a.id, ids[a.key] != "" && ids[a.key] != a.id:
			offences = append(offences, fmt.Sprintf("%s was doubled: it ran as %s, and is known as %s", a.key, a.id, cmp.Or(o.id, ids[a.key])))
		}
		ids[a.key] = a.id
	}
	return offences
}

// limitHeld compares the limit with the attempts of the engine's own account, and
// with the handlers that ran under a lease that was certainly valid.
func (l *load) limitHeld(tasks map[string]*yardv1.Task) []string {
	var granted, running []span
	for key, task := range tasks {
		if l.orders[key].kind == capped {
			granted = append(granted, grants(task)...)
		}
	}
	for _, a := range l.attempts {
		if a.kind != capped {
			continue
		}
		end := a.leaseEnd
		if !a.ended.IsZero() && a.ended.Before(end) {
			end = a.ended
		}
		if end.After(a.began) {
			running = append(running, span{a.began, end, a.key})
		}
	}
	var offences []string
	for name, spans := range map[string][]span{"granted": granted, "running": running} {
		if most, which := overlap(spans); len(most) > slotLimit {
			offences = append(offences, fmt.Sprintf("%d capped attempts were %s at once, at %v, limit %d: %v", len(most), name, which.Format(time.StampMilli), slotLimit, most))
		} else {
			l.t.Logf("at most %d of %d capped attempts were %s at once, limit %d", len(most), len(spans), name, slotLimit)
		}
	}
	return offences
}

// span is the life of one attempt.
type span struct {
	from, to time.Time
	key      string
}

func (s span) String() string {
	return fmt.Sprintf("%s %s–%s", s.key, s.from.Format("05.000"), s.to.Format("05.000"))
}

// grants reads the attempts out of a task's history.
func grants(task *yardv1.Task) []span {
	var all []span
	open := false
	for _, e := range task.Events {
		at := time.UnixMilli(e.AtMs)
		switch e.Kind {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED:
			all, open = append(all, span{at, at, task.TaskId}), true
		case yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED, yardv1.TaskEventKind_TASK_EVENT_KIND_FAILED, yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT,
			yardv1.TaskEventKind_TASK_EVENT_KIND_LOST, yardv1.TaskEventKind_TASK_EVENT_KIND_HANDED_BACK, yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD:
			if open {
				all[len(all)-1].to, open = at, false
			}
		}
	}
	return all
}

// overlap returns the most spans that there are at one instant, and that instant.
// One that ends when another begins does not overlap it.
func overlap(spans []span) ([]span, time.Time) {
	byStart := slices.SortedFunc(slices.Values(spans), func(a, b span) int { return a.from.Compare(b.from) })
	var now, most []span
	var at time.Time
	for _, s := range byStart {
		now = append(slices.DeleteFunc(now, func(o span) bool { return !o.to.After(s.from) }), s)
		if len(now) > len(most) {
			most, at = slices.Clone(now), s.from
		}
	}
	return most, at
}
