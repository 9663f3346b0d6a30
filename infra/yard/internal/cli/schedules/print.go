package schedules

import (
	"fmt"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// whenOf is when a schedule runs, on one line.
func whenOf(s schedules.Schedule) string {
	when := append([]string(nil), s.Cron...)
	if s.Every != 0 {
		when = append(when, "every "+s.Every.String())
	}
	return strings.Join(when, ", ")
}

// stateOf is what a schedule does now.
func stateOf(i *schedules.Info) string {
	switch {
	case i.Schedule.Paused:
		return "paused"
	case len(i.Next) == 0:
		return "over"
	}
	return "on"
}

func printAll(a *command.App, all []*schedules.Info) error {
	return a.Show(&yardv1.ListSchedulesResponse{Schedules: command.Each(all, (*schedules.Info).Wire)}, func(t *command.Table) {
		t.Row("SCHEDULE", "STATE", "WHEN", "TIME ZONE", "TYPE", "TASKLIST", "NEXT", "RUNS", "SKIPPED", "MISSED", command.Wide{"OVERLAP", "WAITING", "RUNNING", "REVISION", "NOTE"})
		for _, i := range all {
			s := i.Schedule
			t.Row(s.Name, stateOf(i), whenOf(s), s.TimeZone, s.Task.Type, s.Task.Tasklist, nextOf(i), i.Runs, i.Skipped, i.Missed, command.Wide{s.Overlap, i.Waiting, i.Running, i.Revision, s.Note})
		}
	})
}

// nextOf is the next time of a schedule, in its zone.
func nextOf(i *schedules.Info) string {
	if len(i.Next) == 0 {
		return "-"
	}
	return i.Next[0].In(zoneOf(i.Schedule.TimeZone)).Format(zoneForm)
}

func printInfo(a *command.App, i *schedules.Info) error {
	return a.Show(&yardv1.GetScheduleResponse{Schedule: i.Wire()}, func(t *command.Table) {
		s := i.Schedule
		t.Row("schedule", s.Name+" (domain "+a.Domain+")")
		t.Row("state", stateOf(i))
		t.Some("note", s.Note)
		t.Row("when", whenOf(s))
		t.Row("time zone", s.TimeZone)
		t.Some("days without runs", strings.Join(s.ExcludeDates, ", "))
		t.Some("times without runs", strings.Join(s.ExcludeCron, ", "))
		t.Row("task", s.Task.Type+" in "+s.Task.Tasklist)
		t.Row("overlap", s.Overlap)
		t.Row("missed", fmt.Sprintf("%s, at most %v old", s.Missed, s.CatchUp))
		t.Row("runs", fmt.Sprintf("%d, and %d skipped, %d missed", i.Runs, i.Skipped, i.Missed))
		if i.Waiting+i.Running > 0 {
			t.Row("now", fmt.Sprintf("%d running, %d waiting", i.Running, i.Waiting))
		}
		t.Row("revision", i.Revision)
		if len(i.Next) > 0 {
			t.Row()
			t.Row("NEXT IN ITS ZONE", "LOCAL TIME")
			for _, at := range i.Next {
				t.Row(at.In(zoneOf(s.TimeZone)).Format(zoneForm), command.At(at.UnixMilli()))
			}
		}
		if len(i.Recent) > 0 {
			t.Row()
			t.Row("RUN OF", "REASON", "STARTED", "TASK")
			for _, r := range i.Recent {
				started := "-"
				if !r.StartedAt.IsZero() {
					started = command.At(r.StartedAt.UnixMilli())
				}
				t.Row(command.At(r.RunAt.UnixMilli()), r.Reason, started, command.OrDash(r.TaskID))
			}
		}
	})
}
