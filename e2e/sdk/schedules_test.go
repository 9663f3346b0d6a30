package sdk_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A schedule goes through the SDK and the engine: it is put, shown, listed, changed by its revision, paused, triggered and deleted. Its runs are tasks.
func TestSchedules(t *testing.T) {
	engine := yardtest.New(t)
	all := schedules.Of(engine.Client)
	yearly := schedules.Schedule{
		Name: "yearly", Cron: []string{"@yearly"}, TimeZone: "Europe/Berlin",
		Task: yard.Task{Type: "x", Tasklist: "mail", Payload: map[string]string{"name": "{{schedule}}"}, Headers: map[string]string{"day": "{{run_date}}"}},
	}
	info, err := all.Create(soon(t), yearly)
	testkit.NoError(t, err)
	if s := info.Schedule; s.Overlap != schedules.OverlapSkip || s.Missed != schedules.MissedLast || s.CatchUp != time.Hour || len(info.Next) != 5 || info.CreatedAt.IsZero() {
		t.Errorf("put: %+v", info)
	}
	testkit.Code(t, "the end of its domain", testkit.Err(engine.Client.Admin().DeleteDomain(soon(t), engine.Client.Domain(), 0)), fault.FailedPrecondition)
	other := yearly
	other.Note = "another one"
	testkit.Code(t, "a second one", testkit.Err(all.Create(soon(t), other)), fault.AlreadyExists)
	testkit.Code(t, "a wrong revision", testkit.Err(all.Replace(soon(t), other, info.Revision+7)), fault.Stale)
	info, err = all.Replace(soon(t), other, info.Revision)
	testkit.NoError(t, err)
	testkit.Equal(t, "the note", info.Schedule.Note, "another one")
	info, err = all.Pause(soon(t), "yearly", "")
	testkit.NoError(t, err)
	testkit.Equal(t, "paused", info.Schedule.Paused && len(info.Next) == 0, true)

	runAt, err := all.Trigger(soon(t), "yearly", "first")
	testkit.NoError(t, err)
	again, err := all.Trigger(soon(t), "yearly", "first")
	testkit.NoError(t, err)
	testkit.Equal(t, "the run of a repeat", again, runAt)
	testkit.Eventually(t, within, func() error {
		info, err = all.Get(soon(t), "yearly")
		if err == nil && (len(info.Recent) != 1 || info.Recent[0].TaskID == "") {
			err = fmt.Errorf("the last runs are %+v", info.Recent)
		}
		return err
	})
	task, err := engine.Client.Get(soon(t), info.Recent[0].TaskID)
	testkit.NoError(t, err)
	testkit.Equal(t, "the payload", string(task.Payload.Data), `{"name":"yearly"}`)
	testkit.Equal(t, "the schedule of the task", task.Headers["yard-schedule"], "yearly")

	info, err = all.Resume(soon(t), "yearly", "")
	testkit.NoError(t, err)
	next, err := all.Next(soon(t), "yearly", time.Time{}, 5)
	testkit.NoError(t, err)
	testkit.Equal(t, "the next times", fmt.Sprint(next), fmt.Sprint(info.Next))
	names := ""
	for info, err := range all.All(soon(t)) {
		testkit.NoError(t, err)
		names += info.Schedule.Name
	}
	testkit.Equal(t, "listed", names, "yearly")
	deleted, err := all.Delete(soon(t), "yearly")
	testkit.NoError(t, err)
	testkit.Equal(t, "deleted", deleted, true)
	testkit.Code(t, "it is no more", testkit.Err(all.Get(soon(t), "yearly")), fault.NotFound)
}

// The next times of a schedule that is not made, and what is wrong with one.
func TestNextOfAScheduleThatIsNotMade(t *testing.T) {
	engine := yardtest.New(t)
	all := schedules.Of(engine.Client)
	after := time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC)
	next, err := all.NextOf(soon(t), schedules.Schedule{Cron: []string{"30 2 * * *"}, TimeZone: "Europe/Berlin"}, after, 2)
	testkit.NoError(t, err)
	want := []time.Time{time.Date(2026, 10, 24, 0, 30, 0, 0, time.UTC), time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)}
	if len(next) != 2 || !next[0].Equal(want[0]) || !next[1].Equal(want[1]) {
		t.Errorf("next %v, want %v", next, want)
	}
	_, err = all.NextOf(soon(t), schedules.Schedule{Cron: []string{"never"}}, after, 2)
	testkit.Code(t, "a bad expression", err, fault.InvalidArgument)
}
