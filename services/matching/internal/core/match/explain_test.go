package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// explain is what the owner knows of tasks of a type and a group of tasklist l0 of domain d.
func (o *owner) explain(typ, group string) Explained {
	return o.s.Explain(Kind{Domain: "d", Tasklist: "l0", Type: typ, Group: group}, 10, Now{Mono: o.w.now})
}

// A full limit is closed, and names the attempt that has its slot. A poll waits, and triggers of the type are counted.
func TestExplainAFullLimit(t *testing.T) {
	w, o := limited(t, 1, 1)
	w.ends = false
	w.wait("p", 1)
	begun := w.ready("d", "l0", "a", 2, 1)
	w.run(time.Second)
	if e := o.explain("a", ""); len(e.Limits) != 1 || e.Limits[0].Closed || e.Limits[0].Running != 1 || e.Polled || e.Triggers != 0 {
		t.Errorf("while nothing waits: %+v", e)
	}
	w.poll("q", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, Worker: "w", Types: []string{"a", "c"}, For: time.Hour})
	w.ready("d", "l0", "a", 2, 3)
	w.run(time.Second)
	e := o.explain("a", "")
	testkit.MustEqual(t, "limits", len(e.Limits), 1)
	if l := e.Limits[0]; l.Ref != "type/a" || l.Max != 1 || !l.Closed || l.Counting || len(l.Holders) != 1 || l.Holders[0].ID != begun[0].id || l.Tasks != 3 {
		t.Errorf("%+v", l)
	}
	if !e.Polled || e.Triggers != 3 || e.Workers.Takers == 0 || e.Workers.Last == nil || e.Workers.Last.Worker != "w" {
		t.Errorf("%+v", e)
	}
	if e = o.explain("b", ""); len(e.Limits) != 0 || e.Polled || e.Triggers != 0 {
		t.Errorf("of another type: %+v", e)
	}
	if e = o.s.Explain(Kind{Domain: "e", Tasklist: "l0", Type: "a"}, 10, Now{Mono: w.now}); len(e.Limits) != 0 || e.Workers.All != 0 || e.Workers.Known == 0 {
		t.Errorf("of another domain: %+v", e)
	}
}

// A rate without a start says when it is tried again.
func TestExplainARate(t *testing.T) {
	w, o := rated(t, map[string]table.Rate{"d/a": {EveryUS: 3600e6, Burst: 1}})
	w.ends = false
	w.wait("p", 2)
	w.ready("d", "l0", "a", 2, 2)
	w.run(time.Second)
	e := o.explain("a", "")
	testkit.MustEqual(t, "limits", len(e.Limits), 1)
	if l := e.Limits[0]; l.Ref != "rate/type/a" || !l.Closed || l.Counting || l.Max != 0 || l.Next < 59*time.Minute || l.Next > time.Hour {
		t.Errorf("the rate: %+v", l)
	}
}

// Of a limit per group the one of the task's group counts. In shadow a limit keeps nothing waiting.
func TestExplainALimitPerGroup(t *testing.T) {
	w := newWorld(t, 1, 1)
	o := w.own(0, 1)
	w.ends, w.lease = false, time.Hour
	w.limits["d/a*"] = 1
	w.limitsChanged()
	w.run(100 * ms)
	w.wait("p", 9)
	w.grouped("acme", "l0", "a", 2)
	w.grouped("zeta", "l0", "a", 1)
	w.run(time.Second)
	for group, closed := range map[string]bool{"acme": true, "zeta": false} {
		e := o.explain("a", group)
		testkit.MustEqual(t, "limits of "+group, len(e.Limits), 1)
		if l := e.Limits[0]; l.Ref != table.Ref("type/a/group/"+group) || l.Closed != closed || l.Running != 1 {
			t.Errorf("%+v", l)
		}
	}
	testkit.Equal(t, "limits of a task without a group", len(o.explain("a", "").Limits), 0)
	w.limits["d/a"], w.shadow["d/a"] = 1, true
	w.limitsChanged()
	w.run(time.Second)
	testkit.Equal(t, "limits beside one in shadow", len(o.explain("a", "").Limits), 0)
}
