package taskstate

import (
	"encoding/json"
	"testing"
)

func TestHasHeaders(t *testing.T) {
	with := &Task{Extra: &Extra{Headers: []Header{{"a", "1"}, {"b", ""}, {"c", "3"}}}}
	for _, c := range []struct {
		of   *Task
		want map[string]string
		has  bool
	}{
		{new(Task), nil, true},
		{new(Task), map[string]string{"a": ""}, false},
		{with, nil, true},
		{with, map[string]string{"a": "1", "c": "3"}, true},
		{with, map[string]string{"b": ""}, true},
		{with, map[string]string{"a": "1", "c": "4"}, false},
		{with, map[string]string{"a": "1", "d": ""}, false},
		{with, map[string]string{"A": "1"}, false},
	} {
		if got := c.of.HasHeaders(c.want); got != c.has {
			t.Errorf("%v: %v", c.want, got)
		}
	}
	if more := with.Footprint() - new(Task).Footprint(); more <= len("a1bc3") {
		t.Errorf("headers count as %d bytes", more)
	}
}

// TestWhereAUniqueKeyLies is known once the submit is read; what copies share stays as it is.
func TestWhereAUniqueKeyLies(t *testing.T) {
	shared := &Extra{Unique: &Unique{Key: "7", Before: 3}}
	if own := shared.LiesAt(10, 0); own.Unique.Seq != 7 || own.Unique.Before != 0 || own.Order != nil || shared.Unique.Before != 3 {
		t.Errorf("%+v of %+v", own.Unique, shared.Unique)
	}
	both := &Extra{Unique: &Unique{Key: "7", Before: 1}, Order: &Order{Key: "a"}}
	if own := both.LiesAt(10, 2); own.Unique.Seq != 9 || own.Order.Index != 2 {
		t.Errorf("%+v, %+v", own.Unique, own.Order)
	}
	for _, known := range []*Extra{nil, {Group: "acme"}, {Unique: &Unique{Key: "7", Seq: 4}}} {
		if own := known.LiesAt(10, 2); own != known {
			t.Errorf("%+v is another one", known)
		}
	}
	if new(Task).Unique() != nil || (&Task{Extra: shared}).Unique() != shared.Unique {
		t.Error("a task has the key of its own")
	}
	if own := (&Extra{Unique: &Unique{Key: "7", Seq: 4}, Order: &Order{Key: "a"}}).LiesAt(10, 0); own.Unique.Seq != 4 {
		t.Errorf("the key lies at %d", own.Unique.Seq)
	}
}

func TestABatchOfATask(t *testing.T) {
	of := &Task{Extra: &Extra{Batch: &Batch{ID: "night"}}}
	if new(Task).BatchID() != "" || (&Task{Extra: new(Extra)}).BatchID() != "" || of.BatchID() != "night" {
		t.Errorf("it is a member of %q", of.BatchID())
	}
}

// TestACopyKeepsWhatFewTasksHave, and its steps: a snapshot shares these with the task, which goes on while that is written, and drops its oldest steps.
func TestACopyKeepsWhatFewTasksHave(t *testing.T) {
	task := fresh()
	task.Policy = &Policy{MaxAttempts: 1, InitialIntervalMS: 1000, Backoff: 1, MaxIntervalMS: 1000, StartToCloseMS: 60_000}
	task.Extra = (&Extra{
		Headers: []Header{{"a", "b"}}, Expiry: Expiry{StartWithinMS: 500_000, FinishWithinMS: 900_000}, Group: "acme", Unique: &Unique{Key: "7"},
		Order: &Order{Key: "a", Blocks: true}, Batch: &Batch{ID: "night"},
	}).LiesAt(7, 0)
	task.Steps = stepped(repeat(stepsMax, "")...).Steps
	shared := func(t *Task) string {
		text, err := json.Marshal([]any{t.Extra, t.Policy, t.Steps})
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	started := func() {
		if v := grab(task, t0+100); !v.Granted {
			t.Fatalf("not granted: %+v", v)
		}
	}
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"gets its turn", task.TakeTurn},
		{"starts", started},
		{"blocks its key", func() { send(task, Failed, t0+200) }},
		{"is changed", func() { changeAt(task, &Update{Priority: 1, Group: "zoo", Headers: []Header{{"c", "d"}}}, 10, t0+300) }},
		{"is changed again", func() {
			changeAt(task, &Update{StartWithinMS: 600_000, Policy: &Policy{MaxAttempts: 2}, IfRevision: 2}, 11, t0+300)
		}},
		{"is refused a change", func() { changeAt(task, &Update{Priority: 2, IfRevision: 1}, 12, t0+300) }},
		{"is unblocked", func() { ofKey(task, Event{Kind: Unblocked, OrderKey: "a"}, 77, 13, t0+400) }},
		{"starts again", started},
		{"is cancelled", func() { send(task, Cancel, t0+500) }},
		{"is brought back", func() { Bring(task, redriveOf(11), t0+600) }},
		{"is brought back again", func() { Bring(task, redriveOf(12), t0+700) }},
	} {
		was := *task
		before, now := shared(&was), shared(task)
		c.do()
		if shared(&was) != before {
			t.Errorf("its copy changes as the task %s", c.what)
		}
		if shared(task) == now {
			t.Errorf("nothing changes as the task %s", c.what)
		}
	}
}
