package scenario_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
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
		w.eventually(func() error {
			w.submitOne(&yardv1.NewTask{Type: "probe"})
			tasks, err := w.client.Wire().Poll(w.soon(), &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 50, Types: []string{"probe"}})
			if len(tasks) > 0 {
				w.complete(tasks...)
				return errors.New("a task still starts")
			}
			return err
		})
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		w.reach(id, "ready")
		if _, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Priority: 2}); err != nil {
			t.Fatal(err)
		}
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

		if _, err := w.client.Resume(w.soon(), yard.OfTasklist(list)); err != nil {
			t.Fatal(err)
		}
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
		w.eventually(func() error {
			if d, err := w.client.DescribeTasklist(w.soon(), list); err != nil || len(d.PausedTypes) > 0 {
				return fmt.Errorf("%v %v", d.PausedTypes, err)
			}
			return nil
		})
		_, err = w.client.Resume(w.soon(), yard.OfType("x"))
		refused(t, err, fault.NotFound)
	})
}
