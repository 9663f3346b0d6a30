package chaos_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// keptApart is by how much the end of a key that is kept may look too early: who gives it away has a clock of its own.
const keptApart = 100 * time.Millisecond

// wordsLast is how long a key is kept at most by a try that the log took too late: its word is looked into after two minutes (decision 40).
const wordsLast = 4 * time.Minute

// inOrder: tasks of an order key run one after the other. Those that were never delayed run in the order of their submits, those that came
// from the timer store in the order in which they were fired; between the two the log decides.
func inOrder(ends []*lifeEnd, offend func(string, ...any)) {
	keys := map[string][]*lifeEnd{}
	for _, e := range ends {
		if e.task != nil && e.task.order != "" {
			keys[e.task.order] = append(keys[e.task.order], e)
		}
	}
	for key, line := range keys {
		began := func(e *lifeEnd) bool { return len(e.starts) > 0 }
		never := func(e *lifeEnd) bool { return e.parked == 0 }
		fired := func(e *lifeEnd) bool { return e.fired > e.parked }
		one := func(some func(*lifeEnd) bool, place func(*lifeEnd) int64) {
			var before *lifeEnd
			line := slices.DeleteFunc(slices.Clone(line), func(e *lifeEnd) bool { return !some(e) })
			slices.SortStableFunc(line, func(a, b *lifeEnd) int { return cmp.Compare(place(a), place(b)) })
			for _, e := range line {
				if before != nil && place(before) < place(e) && began(e) && e.starts[0] < before.first {
					offend("of order key %s task %d begins before task %d has ended\n%s\n%s", key, e.task.n, before.task.n, e.tell("the second", nil), before.tell("the first", nil))
				}
				if before == nil || e.first > before.first {
					before = e
				}
			}
		}
		one(began, func(e *lifeEnd) int64 { return e.starts[0] })
		one(never, func(e *lifeEnd) int64 { return int64(e.task.n) })
		one(fired, func(e *lifeEnd) int64 { return e.fired })
	}
}

// alone: of a unique key one task lives at a time.
func alone(ends []*lifeEnd, offend func(string, ...any)) {
	keys := map[string][]*lifeEnd{}
	for _, e := range ends {
		if e.UniqueKey != "" {
			keys[e.UniqueKey] = append(keys[e.UniqueKey], e)
		}
	}
	for key, line := range keys {
		slices.SortFunc(line, func(a, b *lifeEnd) int { return cmp.Compare(a.lived, b.lived) })
		for i, e := range line[1:] {
			before := line[i]
			free := before.first + max(before.UniqueForMs-keptApart.Milliseconds(), 0)
			if e.lived < before.first || e.lived < free {
				offend("of unique key %s two tasks live at a time, or it was not kept\n%s\n%s", key, e.tell("the second", nil), before.tell("the first", nil))
			}
		}
	}
}

// probe submits a task of each key: all are free, and none is stuck.
func (l *life) probe() {
	l.t.Helper()
	l.mu.Lock()
	unique, ordered := map[string]bool{}, map[string]bool{}
	for _, o := range l.tasks {
		if o.unique != "" {
			unique[o.unique] = true
		}
		if o.order != "" {
			ordered[o.order] = true
		}
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), wordsLast+2*within)
	defer cancel()
	var open []string
	testkit.Eventually(l.t, wordsLast, func() error {
		var tasks []yard.Task
		for key := range unique {
			tasks = append(tasks, yard.Task{Type: plainLife, Tasklist: tasklist, Payload: lifeInput{N: l.probeTask()}, Unique: &yard.Unique{Key: key, Reject: true}})
		}
		all, err := l.client.SubmitEach(ctx, tasks)
		var kept string
		for i, s := range all {
			if s.Outcome == yard.OutcomeCreated {
				delete(unique, tasks[i].Unique.Key)
				open = append(open, s.ID)
			} else {
				kept = tasks[i].Unique.Key + " by " + s.ID
			}
		}
		if err == nil && len(unique) > 0 {
			err = fmt.Errorf("%d keys are kept, and all tasks have ended: %s", len(unique), kept)
		}
		return err
	})
	var tasks []yard.Task
	for key := range ordered {
		tasks = append(tasks, yard.Task{Type: plainLife, Tasklist: tasklist, Payload: lifeInput{N: l.probeTask()}, OrderKey: key})
	}
	ids, err := l.client.SubmitMany(ctx, tasks)
	testkit.Check(l.t, err)
	for _, id := range append(open, ids...) {
		if _, err := l.client.Wait(ctx, id); err != nil {
			l.t.Errorf("round %d: a task of a key that must be free: %v", l.round, err)
		}
	}
}

// probeTask makes a task that no one submits but probe.
func (l *life) probeTask() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	l.tasks[l.made] = &lifeTask{n: l.made, typ: plainLife}
	return l.made
}
