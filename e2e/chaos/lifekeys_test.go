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

// inOrder: no attempt of a task with an order key begins before those that were submitted earlier have ended.
func inOrder(ends []*lifeEnd, offend func(string, ...any)) {
	keys := map[string][]*lifeEnd{}
	for _, e := range ends {
		if e.task != nil && e.task.order != "" {
			keys[e.task.order] = append(keys[e.task.order], e)
		}
	}
	for key, line := range keys {
		slices.SortFunc(line, func(a, b *lifeEnd) int { return cmp.Compare(a.task.n, b.task.n) })
		var before *lifeEnd
		for _, e := range line {
			if before != nil && len(e.starts) > 0 && e.starts[0] < before.first {
				offend("of order key %s task %d begins before task %d has ended\n%s\n%s", key, e.task.n, before.task.n, e.tell("the second", nil), before.tell("the first", nil))
			}
			if before == nil || e.first > before.first {
				before = e
			}
		}
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
