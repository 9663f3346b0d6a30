package scenario_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAPausedTasklistStartsNothing: its tasks are ready and wait, beside a poll, while another tasklist's come and go; a
// running attempt goes on; settings that are put keep the pause; resumed, they run.
func TestAPausedTasklistStartsNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		first := w.submitOne(&yardv1.NewTask{Type: "x"})
		running := w.takeOne()
		equal(t, "running", running.TaskId, first)
		if p, err := w.client.Pause(w.soon(), yard.OfTasklist(list), yard.PauseOptions{Reason: "down", By: "ann"}); err != nil || p.Since.IsZero() {
			t.Fatalf("%+v %v", p, err)
		}
		// A shard may hear of it up to a second later: what it takes until then says so.
		w.startsNothing(&yardv1.NewTask{Type: "probe"})
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		w.reach(id, "ready")
		testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Priority: 2})))
		for range 5 {
			other := w.submitOne(&yardv1.NewTask{Type: "x", Tasklist: "other"})
			equal(t, "the other tasklist", w.complete(w.someOf("other", 1)...), "OK")
			want(t, w.ended(other), "completed", "submitted started completed")
			w.nothing(list)
		}
		equal(t, "the running attempt", w.complete(running), "OK")
		d, err := w.client.DescribeTasklist(w.soon(), list)
		if err != nil || d.Pause == nil || d.Pause.By != "ann" || d.Ready < 1 {
			t.Errorf("%+v %v", d, err)
		}
		want(t, w.get(id), "ready", "submitted")

		testkit.NoError(t, testkit.Err(w.client.Resume(w.soon(), yard.OfTasklist(list))))
		equal(t, "resumed", w.complete(w.take(1, "x")...), "OK")
		want(t, w.ended(id), "completed", "submitted started completed")
		_, err = w.client.Resume(w.soon(), yard.OfTasklist(list))
		refused(t, err, fault.NotFound)
	})
}

// TestAPauseEndsByItself: a type's tasks start after its pause, without anybody's doing.
func TestAPauseEndsByItself(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		p, err := w.client.Pause(w.soon(), yard.OfType("x"), yard.PauseOptions{For: time.Second})
		if err != nil || p.Until.Sub(p.Since) != time.Second {
			t.Fatalf("%+v %v", p, err)
		}
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		equal(t, "after the pause", w.complete(w.takeOne("x")), "OK")
		want(t, w.ended(id), "completed", "submitted started completed")
		w.described(list, func(d yard.TasklistInfo) bool { return len(d.PausedTypes) <= 0 })
		_, err = w.client.Resume(w.soon(), yard.OfType("x"))
		refused(t, err, fault.NotFound)
	})
}
