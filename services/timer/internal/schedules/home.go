package schedules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/runs"
	"github.com/yardmaster-io/yardmaster/shared/schedule"
)

// Plan is a schedule as it is stored: when it runs, by which rules, which task, and its progress.
type Plan struct {
	home     *logv1.ScheduleHome
	name     Name
	policy   runs.Policy
	calendar calendar
}

// calendar implements runs.Calendar.
type calendar struct {
	*schedule.Times
	name Name
}

// Next implements runs.Calendar.
func (c calendar) Next(afterMS int64) (int64, bool) {
	at, ok := c.Times.Next(time.UnixMilli(afterMS))
	return at.UnixMilli(), ok
}

// Jitter implements runs.Calendar.
func (c calendar) Jitter(atMS int64) int64 {
	return c.Times.Jitter(c.name.Domain, c.name.Schedule, time.UnixMilli(atMS)).Milliseconds()
}

// PlanOf reads what a schedule says.
func PlanOf(n Name, home *logv1.ScheduleHome) (*Plan, error) {
	put := &yardv1.Schedule{}
	if err := put.UnmarshalVT(home.Schedule); err != nil {
		return nil, fmt.Errorf("schedule %s of domain %s: %w", n.Schedule, n.Domain, err)
	}
	times, err := schedule.Parse(put)
	if err != nil {
		return nil, fmt.Errorf("schedule %s of domain %s: %w", n.Schedule, n.Domain, err)
	}
	return &Plan{
		home: home, name: n, calendar: calendar{times, n},
		policy: runs.Policy{
			Overlap: runs.Overlap(put.Overlap), Missed: runs.Missed(put.Missed), CatchUpMS: put.CatchUpMs, RunsMax: put.RunsMax, Paused: put.Paused,
		},
	}, nil
}

// stateOf reads the progress of a schedule.
func stateOf(home *logv1.ScheduleHome) runs.State {
	s := runs.State{DecidedMS: home.DecidedUpToMs, Due: runsOf(home.Due), Recent: runsOf(home.Recent), Runs: home.Runs, Skipped: home.Skipped, Missed: home.Missed}
	for _, id := range home.Running {
		s.Running = append(s.Running, taskID(id))
	}
	return s
}

func runsOf(all []*logv1.ScheduledRun) (out []runs.Run) {
	for _, r := range all {
		out = append(out, runs.Run{AtMS: r.RunAtMs, StartMS: r.StartAtMs, Reason: runs.Reason(r.Reason), Task: taskID(r.TaskId), Request: r.RequestId})
	}
	return out
}

// taskID reads an id; one of another length is none.
func taskID(b []byte) (id ids.TaskID) {
	if len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// withState is a schedule with its progress.
func withState(home *logv1.ScheduleHome, s runs.State, version uint32) *logv1.ScheduleHome {
	now := home.CloneVT()
	now.LogVersion = version
	now.DecidedUpToMs, now.Due, now.Recent = s.DecidedMS, stored(s.Due), stored(s.Recent)
	now.Runs, now.Skipped, now.Missed = s.Runs, s.Skipped, s.Missed
	now.Running = nil
	for _, id := range s.Running {
		now.Running = append(now.Running, slices.Clone(id[:]))
	}
	return now
}

func stored(all []runs.Run) (out []*logv1.ScheduledRun) {
	for _, r := range all {
		s := &logv1.ScheduledRun{RunAtMs: r.AtMS, StartAtMs: r.StartMS, Reason: logv1.RunReason(r.Reason), RequestId: r.Request}
		if r.Task != (ids.TaskID{}) {
			s.TaskId = slices.Clone(r.Task[:])
		}
		out = append(out, s)
	}
	return out
}

// newID is the id of the task of a run that is submitted now.
func newID(partition int, now time.Time) ids.TaskID {
	return ids.NewTaskID(now, partition, rand.Uint64())
}

// submit is the task of a run.
func (p *Plan) submit(r runs.Run) *logv1.Record {
	t := p.home.Task.CloneVT()
	t.Id = slices.Clone(r.Task[:])
	p.calendar.Expand(t, p.name.Schedule, time.UnixMilli(r.AtMS))
	t.Headers = append(t.Headers,
		&logv1.Header{Name: "yard-schedule", Value: p.name.Schedule},
		&logv1.Header{Name: "yard-run-at-ms", Value: strconv.FormatInt(r.AtMS, 10)},
	)
	slices.SortFunc(t.Headers, func(a, b *logv1.Header) int { return strings.Compare(a.Name, b.Name) })
	return t
}
