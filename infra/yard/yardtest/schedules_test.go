package yardtest_test

import (
	"context"
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
