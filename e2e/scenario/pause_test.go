package scenario_test

import (
	"fmt"
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

// TestAPausedDomainStartsNothing, whatever else of it is paused or resumed; what runs goes on, and submits are accepted until it is drained.
func TestAPausedDomainStartsNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.submitOne(&yardv1.NewTask{Type: "x"})
		running := w.takeOne()
		p, err := w.admin.PauseDomain(w.soon(), w.domain, yard.PauseOptions{Reason: "unpaid", By: "ann"})
		if err != nil || p.Since.IsZero() {
			t.Fatalf("%+v %v", p, err)
		}
		w.startsNothing(&yardv1.NewTask{Type: "probe"})
		testkit.NoError(t, testkit.Err(w.client.Pause(w.soon(), yard.OfTasklist(list), yard.PauseOptions{})))
		testkit.NoError(t, testkit.Err(w.client.Resume(w.soon(), yard.OfTasklist(list))))
		testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, MaxConcurrency: 50})))
		id, other := w.submitOne(&yardv1.NewTask{Type: "x"}), w.submitOne(&yardv1.NewTask{Type: "y", Tasklist: "other"})
		w.reach(other, "ready")
		w.nothing(list)
		w.nothing("other")
		equal(t, "the running attempt", w.complete(running), "OK")
		testkit.NoError(t, testkit.Err(w.admin.DrainDomain(w.soon(), w.domain, yard.PauseOptions{Reason: "it moves"})))
		w.eventually(func() error {
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "probe"}}})
			if fault.CodeOf(err) != fault.FailedPrecondition {
				return fmt.Errorf("a task is still accepted: %w", err)
			}
			return nil
		})
		d, err := w.client.DescribeTasklist(w.soon(), list)
		if err != nil || d.Pause == nil || !d.Pause.WholeDomain || d.Pause.By != "ann" || d.Drain == nil || !d.Drain.WholeDomain {
			t.Errorf("%+v %v", d, err)
		}

		testkit.NoError(t, testkit.Err(w.admin.ResumeDomain(w.soon(), w.domain, false)))
		equal(t, "resumed", w.complete(w.take(1, "x")...), "OK")
		want(t, w.ended(id), "completed", "submitted started completed")
		equal(t, "of another tasklist", w.complete(w.someOf("other", 1)...), "OK")
		if d, err := w.admin.GetDomain(w.soon(), w.domain); err != nil || d.Pause != nil || d.Drain == nil || d.Drain.Reason != "it moves" {
			t.Errorf("%+v %v", d, err)
		}
		testkit.NoError(t, testkit.Err(w.admin.ResumeDomain(w.soon(), w.domain, true)))
		w.eventually(func() error {
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "after"}}})
			return err
		})
		refused(t, testkit.Err(w.admin.ResumeDomain(w.soon(), w.domain, false)), fault.NotFound)
		refused(t, testkit.Err(w.admin.PauseDomain(w.soon(), "no-such-domain", yard.PauseOptions{})), fault.NotFound)
	})
}
