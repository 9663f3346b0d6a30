package linear

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// checkWithin bounds the check of one life.
	checkWithin = 30 * time.Second
	// clocksApart is how much the server's clock and the test's may differ, and what milliseconds round.
	clocksApart = 250 * time.Millisecond
	// listed is how many tasks are on one page.
	listed = 500
	// printedMax is how many lives are printed that are wrong.
	printedMax = 5
)

// finish looks at every task once more, when no client has anything under way, and adds what the engine did by itself.
func (h *history) finish(t *testing.T, c *client) {
	t.Helper()
	all := h.list(t, c)
	confirmed := map[string]int64{}
	for _, one := range h.calls {
		if one.in.kind == update && one.out.code == codeOK {
			confirmed[one.in.task] = max(confirmed[one.in.task], one.out.revision)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		h.keys[id] = cmp.Or(h.keys[id], all[id]) // one that was redriven has lost it
		h.trace(t, id)
		var task *yardv1.Task
		var one call
		testkit.Eventually(t, within, func() error {
			one = call{in: input{kind: get, task: id}, from: h.now(), by: c.no}
			resp, err := ask[yardv1.GetResponse](context.Background(), c, "tasks.get", &yardv1.GetRequest{TaskId: id})
			if err != nil {
				return err
			}
			task = resp.Task
			if task.Revision < confirmed[id] {
				return fmt.Errorf("task %s has revision %d still, and %d was confirmed", id, task.Revision, confirmed[id])
			}
			return nil
		})
		one.out = output{code: codeOK, seen: viewOf(task)}
		one.out.seen.weak = false // a moment is over
		h.add(one)
		h.engine(t, task)
	}
}

// list is the key of every task. What a client has an id of is in a list, at the latest when it has stopped to move between two stores.
func (h *history) list(t *testing.T, c *client) map[string]string {
	t.Helper()
	all := map[string]string{}
	testkit.Eventually(t, within, func() error {
		for cursor := ""; ; {
			page, err := ask[yardv1.ListResponse](context.Background(), c, "tasks.list", &yardv1.ListRequest{Limit: listed, Cursor: cursor})
			if err != nil {
				return err
			}
			for _, task := range page.Tasks {
				all[task.TaskId] = task.UniqueKey
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		for id := range h.keys {
			if _, ok := all[id]; !ok {
				return fmt.Errorf("task %s is in no list", id)
			}
		}
		return nil
	})
	return all
}

// trace finds the submit that made a task, if its client does not know. It may have come at any time since.
func (h *history) trace(t *testing.T, id string) {
	t.Helper()
	parsed, err := ids.ParseTaskID(id)
	testkit.NoError(t, err)
	c, open := h.submits[parsed.Time().UnixMilli()]
	if !open {
		return // its client knows it, or the check finds that no submit made it
	}
	testkit.Equal(t, fmt.Sprintf("task %s was made by a submit that was answered with", id), c.out.code, string(fault.Unknown))
	h.calls = slices.DeleteFunc(h.calls, func(o call) bool { return o.in == c.in && o.from == c.from })
	c.out, c.to = output{code: created, task: id}, never
	h.keys[id] = c.in.key
	h.calls = append(h.calls, c)
}

// engine adds what the engine did by itself, as the task's own history says: attempts that no worker received, and those that ended
// without a report. When they may have ended at the earliest is what the worker was promised.
func (h *history) engine(t *testing.T, task *yardv1.Task) {
	t.Helper()
	granted, beats := map[int32]call{}, map[string]int64{}
	for _, c := range h.calls {
		switch {
		case c.in.task != task.TaskId:
		case c.in.kind == grant:
			granted[c.in.attempt] = c
		case c.in.kind == beat && c.out.code == codeOK:
			beats[c.in.token] = max(beats[c.in.token], c.from)
		}
	}
	for i, e := range task.Events {
		one := call{in: input{task: task.TaskId, attempt: e.Grant}, out: output{code: codeOK}, to: never, by: operators + workers}
		g, received := granted[e.Grant]
		from, polled := h.polls[e.Worker]
		switch e.Kind {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED:
			if received {
				continue
			} else if !polled {
				t.Errorf("task %s was given to %q, which no poll is named", task.TaskId, e.Worker)
			}
			one.in.kind, one.from = ghost, from
			one.in.token = fmt.Sprintf("ghost-%d", e.Grant)
		case yardv1.TaskEventKind_TASK_EVENT_KIND_LOST, yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT, yardv1.TaskEventKind_TASK_EVENT_KIND_HANDED_BACK:
			one.in.kind, one.from = over, from
			if received {
				one.from = leaseEnd(task.Type, e.Kind, g.from, beats[g.in.token])
			}
			one.in.final = i+1 < len(task.Events) && task.Events[i+1].Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD
		default:
			continue
		}
		h.count(one.in.kind, e.Kind.Name())
		h.calls = append(h.calls, one)
	}
}

// leaseEnd is until when an attempt was promised to its worker at least.
func leaseEnd(taskType string, how yardv1.TaskEventKind, granted, beaten int64) int64 {
	end := granted + int64(longest)
	if taskType == beatingType {
		end = granted + int64(beatingLongest)
		if how != yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT {
			end = min(end, max(granted, beaten)+int64(silence))
		}
	}
	return end - int64(clocksApart)
}

// check checks every life, and prints what there was.
func (h *history) check(t *testing.T, faults []string) {
	t.Helper()
	lives := h.lives()
	began := time.Now()
	longest, longestOf, unknown, illegal := 0, "", 0, 0
	var slowest time.Duration
	for _, name := range slices.Sorted(maps.Keys(lives)) {
		from := time.Now()
		result, info := porcupine.CheckOperationsVerbose(model(), lives[name], checkWithin)
		if took := time.Since(from); took > slowest {
			slowest = took
		}
		if len(lives[name]) > longest {
			longest, longestOf = len(lives[name]), name
		}
		switch result {
		case porcupine.Illegal:
			if illegal++; illegal > printedMax {
				continue
			}
			t.Errorf("%s: no one life explains the answers; drawn in %s\n%s", name, draw(t, name, info), text(lives[name]))
		case porcupine.Unknown:
			unknown++
			t.Errorf("%s: the check of %d calls takes more than %v", name, len(lives[name]), checkWithin)
		}
	}
	t.Logf("%d calls in %d lives (the longest: %s, %d) in %v; faults: %d %v", len(h.calls), len(lives), longestOf, longest,
		time.Since(h.began).Round(time.Second), len(faults), faults)
	for _, k := range slices.Sorted(maps.Keys(h.counts)) {
		t.Logf("%6d %s", h.counts[k], k)
	}
	t.Logf("checked in %v, the slowest life in %v, not decided %d, wrong %d", time.Since(began).Round(time.Millisecond), slowest.Round(time.Millisecond), unknown, illegal)
}

// draw writes a history as a page for a browser, which outlives the test.
func draw(t *testing.T, name string, info porcupine.LinearizationInfo) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "yard-linear-")
	testkit.NoError(t, err)
	path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".html")
	testkit.NoError(t, porcupine.VisualizePath(model(), info, path))
	return path
}

// text is a history for people.
func text(ops []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range ops {
		end := "       ?"
		if o.Return != never {
			end = fmt.Sprintf("%8.3f", time.Duration(o.Return).Seconds())
		}
		fmt.Fprintf(&b, "%8.3f %s  %2d  %s\n", time.Duration(o.Call).Seconds(), end, o.ClientId, describe(o.Input.(input), o.Output.(output)))
	}
	return b.String()
}
