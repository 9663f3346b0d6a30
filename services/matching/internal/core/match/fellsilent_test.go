package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestASilentWorkerGetsNoMoreTasks: its polls end, those of its domain and no others, in the order in which they came; also one whose grabs are under
// way, which are handed back.
func TestASilentWorkerGetsNoMoreTasks(t *testing.T) {
	w, o := begun(t, 1)
	poll := func(name, domain, id string) {
		w.poll(name, waiting.Poll{Domain: domain, Tasklist: "l0", Max: 1, WorkerID: id, For: 100 * time.Second, Types: []string{name}})
	}
	poll("dead", "d", "x")
	poll("dead too", "d", "x")
	poll("lives", "d", "y")
	poll("unknown", "d", "")
	poll("another", "e", "x")
	w.run(10 * ms)
	o.give(func(in *Inputs) {
		in.Silent = []waiting.SilentWorker{{Domain: "d", ID: "x"}, {Domain: "d", ID: ""}, {Domain: "d", ID: "z"}}
	})
	w.run(10 * ms)
	for name, over := range map[string]bool{"dead": true, "dead too": true, "lives": false, "unknown": false, "another": false} {
		if p := w.polls[name]; (p.answered > 0) != over || p.tasks != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	w.ready("d", "l0", "lives", 1, 1)
	w.ready("d", "l0", "dead", 1, 1)
	w.run(50 * ms)
	if w.polls["lives"].tasks != 1 || w.polls["dead"].tasks != 0 {
		t.Errorf("%+v, %+v", w.polls["lives"], w.polls["dead"])
	}
	poll("dead", "d", "x") // it has come back
	w.run(50 * ms)
	if w.polls["dead"].tasks != 1 {
		t.Errorf("%+v", w.polls["dead"])
	}

	poll("busy", "d", "x")
	w.run(10 * ms)
	w.ready("d", "l0", "busy", 1, 1)
	w.run(ms) // the grab is under way
	o.give(func(in *Inputs) { in.Silent = []waiting.SilentWorker{{Domain: "d", ID: "x"}} })
	w.run(100 * ms)
	if p := w.polls["busy"]; p.answered != 1 {
		t.Errorf("%+v", p)
	}
	w.poll("next", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Second})
	w.run(time.Second)
	testkit.Equal(t, "the task was answered", w.polls["next"].tasks+w.polls["busy"].tasks, 1)
}
