package yardtest_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

type hour struct{ Hour string }

var report = yard.Define[hour, string]("report.build", "reports")

// A program's test of a schedule: it is put, hours pass, and its runs are done.
func TestExampleOfASchedule(t *testing.T) {
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		_, err := schedules.Of(e.Client).Put(t.Context(), schedules.Schedule{
			Name: "hourly", Cron: []string{"@hourly"},
			Task: yard.Task{Type: report.Type(), Tasklist: report.Tasklist(), Payload: map[string]string{"Hour": "{{run_at}}"}},
		})
		testkit.NoError(t, err)
		w := worker(e.Client, report.Tasklist())
		report.Handle(w, func(context.Context, hour) (string, error) { return "built", nil })
		testkit.NoError(t, e.RunFor(t.Context(), 2*time.Hour, w))
		var hours []string
		for _, run := range yardtest.SubmittedOf(t, e, report) {
			hours = append(hours, run.Input.Hour+" "+string(run.Task.State))
		}
		testkit.Equal(t, "hours", strings.Join(hours, ", "), "2000-01-01T01:00:00Z completed, 2000-01-01T02:00:00Z completed")
	})
}

// A week has 168 hours, and an hourly schedule as many runs, each for its own hour.
func TestFakeTimeOfAWeekOfRuns(t *testing.T) {
	testkit.Slow(t, "a week in fake time")
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		began := time.Now().Truncate(time.Hour)
		_, err := schedules.Of(e.Client).Put(t.Context(), schedules.Schedule{
			Name: "hourly", Cron: []string{"@hourly"}, Overlap: schedules.OverlapAllow, Task: yard.Task{Type: report.Type(), Tasklist: report.Tasklist(), Payload: hour{}},
		})
		testkit.NoError(t, err)
		w := worker(e.Client, report.Tasklist())
		report.Handle(w, func(context.Context, hour) (string, error) { return "built", nil })
		testkit.NoError(t, e.RunFor(t.Context(), 7*24*time.Hour, w))
		runs := e.Submitted(t)
		testkit.Equal(t, "runs", len(runs), 7*24)
		for i, run := range runs {
			at := began.Add(time.Duration(i+1) * time.Hour)
			if late := run.CreatedAt.Sub(at); run.Headers["yard-run-at-ms"] != strconv.FormatInt(at.UnixMilli(), 10) || late < 0 || late > time.Second || run.State != yard.StateCompleted {
				t.Fatalf("run %d is %s, of %s, and was submitted at %v", i, run.State, run.Headers["yard-run-at-ms"], run.CreatedAt)
			}
		}
	})
}
