//go:build unix

package yardtest_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// spent says how much real time has passed since, and how much of processors the process has used. The clock of package time is fake here.
func spent(t *testing.T) func() string {
	t.Helper()
	now := func() (at, used time.Duration) {
		var clock syscall.Timeval
		var use syscall.Rusage
		testkit.NoError(t, errors.Join(syscall.Gettimeofday(&clock), syscall.Getrusage(syscall.RUSAGE_SELF, &use)))
		return time.Duration(clock.Nano()), time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
	began, before := now()
	return func() string {
		at, used := now()
		return fmt.Sprintf("%v, and %v of processors", at-began, used-before)
	}
}

// An hour of fake time costs what happens in it: three tasks, of which two are delayed.
func TestTheCostOfAnHour(t *testing.T) {
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		ran := 0
		w := worker(e.Client, sendEmail.Tasklist())
		sendEmail.Handle(w, func(context.Context, email) (string, error) {
			ran++
			return "sent", nil
		})
		took := spent(t)
		submit(t, e.Client, "ann")
		submit(t, e.Client, "bob", delayed(20*time.Minute))
		submit(t, e.Client, "cid", delayed(40*time.Minute))
		testkit.NoError(t, e.RunFor(t.Context(), time.Hour, w))
		t.Log("an hour with three tasks took", took())
		testkit.Equal(t, "tasks run", ran, 3)
	})
}

// A week has 168 hours, and an hourly schedule as many runs, each for its own hour.
func TestFakeTimeOfAWeekOfRuns(t *testing.T) {
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		began := time.Now().Truncate(time.Hour)
		_, err := schedules.Of(e.Client).Put(t.Context(), schedules.Schedule{
			Name: "hourly", Cron: []string{"@hourly"}, Overlap: schedules.OverlapAllow, Task: yard.Task{Type: report.Type(), Tasklist: report.Tasklist(), Payload: hour{}},
		})
		testkit.NoError(t, err)
		w := worker(e.Client, report.Tasklist())
		report.Handle(w, func(context.Context, hour) (string, error) { return "built", nil })
		took := spent(t)
		testkit.NoError(t, e.RunFor(t.Context(), 7*24*time.Hour, w))
		t.Log("a week with 168 runs took", took())
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
