package schedules

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/schedule"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// dueMax bounds the runs of a schedule that wait.
const dueMax = 100

// Trigger has a schedule make one run now (schedules.trigger).
func (s *Schedules) Trigger(ctx context.Context, c call.Call, req *yardv1.TriggerScheduleRequest) (codec.Message, error) {
	if err := validate.TriggerSchedule(req); err != nil {
		return nil, err
	}
	id, at := cmp.Or(req.RequestId, rand.Text()), int64(0)
	_, err := s.changeExisting(ctx, c.Domain, req.Name, func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error) {
		if run := runOf(was, id, logv1.RunReason_RUN_REASON_TRIGGER); run != nil {
			at = run.RunAtMs
			return nil, nil
		}
		if err := s.takesRuns(c, was, countOf(was.Due, logv1.RunReason_RUN_REASON_TRIGGER)+1); err != nil {
			return nil, err
		}
		now := c.Now.UnixMilli()
		at = now
		for slices.ContainsFunc(slices.Concat(was.Due, was.Recent), func(r *logv1.ScheduledRun) bool { return r.RunAtMs == at }) {
			at++ // a run is known by its time
		}
		home := was.CloneVT()
		home.Due = append(home.Due, &logv1.ScheduledRun{RunAtMs: at, StartAtMs: now, Reason: logv1.RunReason_RUN_REASON_TRIGGER, RequestId: id})
		return home, nil
	})
	if err != nil {
		return nil, err
	}
	return &yardv1.TriggerScheduleResponse{RunAtMs: at}, nil
}

// Backfill has a schedule make the runs of a stretch of the past again (schedules.backfill). A time that waits already, by an earlier backfill, is
// not added a second time.
func (s *Schedules) Backfill(ctx context.Context, c call.Call, req *yardv1.BackfillScheduleRequest) (codec.Message, error) {
	if err := validate.BackfillSchedule(req, c.Now); err != nil {
		return nil, err
	}
	id, wanted := cmp.Or(req.RequestId, rand.Text()), []int64(nil)
	_, err := s.changeExisting(ctx, c.Domain, req.Name, func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error) {
		of, err := scheduleOf(was)
		if err != nil {
			return nil, err
		}
		times, err := timesOf(of)
		if err != nil {
			return nil, err
		}
		wanted = times.upTo(req.FromMs-1, req.ToMs, dueMax+1)
		if runOf(was, id, logv1.RunReason_RUN_REASON_BACKFILL) != nil { // an earlier try was stored
			return nil, nil
		}
		home := was.CloneVT()
		for _, at := range wanted {
			waits := func(r *logv1.ScheduledRun) bool {
				return r.RunAtMs == at && r.Reason == logv1.RunReason_RUN_REASON_BACKFILL
			}
			if !slices.ContainsFunc(was.Due, waits) {
				home.Due = append(home.Due, &logv1.ScheduledRun{RunAtMs: at, StartAtMs: c.Now.UnixMilli(), Reason: logv1.RunReason_RUN_REASON_BACKFILL, RequestId: id})
			}
		}
		if len(home.Due) == len(was.Due) {
			return nil, nil
		}
		return home, s.takesRuns(c, was, len(home.Due))
	})
	if err != nil {
		return nil, err
	}
	return &yardv1.BackfillScheduleResponse{Runs: int32(len(wanted))}, nil
}

// runOf is a run of a trigger or of a backfill, by the id of its request: one that waits, or one of the last ones; nil = there is none.
func runOf(home *logv1.ScheduleHome, id string, reason logv1.RunReason) *logv1.ScheduledRun {
	for _, r := range slices.Concat(home.Due, home.Recent) {
		if r.RequestId == id && r.Reason == reason {
			return r
		}
	}
	return nil
}

// takesRuns refuses runs if too many wait, or the log has no space for tasks.
func (s *Schedules) takesRuns(c call.Call, home *logv1.ScheduleHome, wait int) error {
	switch {
	case wait > dueMax:
		return fault.New(fault.ResourceExhausted, "more than %d runs of the schedule would wait: wait until some have started, or take a shorter stretch", dueMax).After(call.FullRetryAfter)
	case !s.d.TakesTasks(topology.SchedulePartition(c.Domain, home.Name, s.d.Partitioning)):
		return call.StorageFull()
	}
	return nil
}

func countOf(runs []*logv1.ScheduledRun, reason logv1.RunReason) (n int) {
	for _, r := range runs {
		if r.Reason == reason {
			n++
		}
	}
	return n
}

// Next returns the next times of a schedule that exists, or of one that is only in the request (schedules.next).
func (s *Schedules) Next(ctx context.Context, c call.Call, req *yardv1.NextScheduleRequest) (codec.Message, error) {
	if err := validate.NextSchedule(req, c.Now); err != nil {
		return nil, err
	}
	of, limit := req.Schedule, int(req.Limit)
	var times calendar
	var err error
	if of == nil {
		home, err := s.existing(ctx, c.Domain, req.Name)
		if err != nil {
			return nil, err
		}
		if of, err = scheduleOf(home); err != nil {
			return nil, err
		}
		if times, err = timesOf(of); err != nil {
			return nil, err
		}
		limit = left(of, home, limit)
	} else {
		if times.Times, err = validate.ScheduleTimes(of); err != nil {
			return nil, err
		}
		limit = left(of, nil, limit)
	}
	last := time.UnixMilli(req.AfterMs).AddDate(aheadYears, 0, 0).UnixMilli()
	return &yardv1.NextScheduleResponse{NextMs: times.upTo(req.AfterMs, last, limit)}, nil
}

// aheadYears is how far ahead times are searched for.
const aheadYears = 10

// left is how many runs of the calendar a schedule still has, at most limit.
func left(of *yardv1.Schedule, home *logv1.ScheduleHome, limit int) int {
	if of.RunsMax == 0 {
		return limit
	}
	used := home.GetRuns() + int64(countOf(home.GetDue(), logv1.RunReason_RUN_REASON_SCHEDULED))
	return int(min(int64(limit), max(of.RunsMax-used, 0)))
}

// calendar has the times of a schedule.
type calendar struct{ *schedule.Times }

// timesOf are the times of a stored schedule.
func timesOf(of *yardv1.Schedule) (calendar, error) {
	times, err := schedule.Parse(of)
	if err != nil {
		return calendar{}, fault.New(fault.Internal, "the schedule %q is stored and cannot be read: %v", of.Name, err)
	}
	return calendar{times}, nil
}

// searchesMore is how many more searches than times there may be: each passes 1,000 excluded stretches at most.
const searchesMore = 10

// upTo returns the times after an instant and not after last, Unix ms, at most limit.
func (t calendar) upTo(afterMs, lastMs int64, limit int) (all []int64) {
	at := time.UnixMilli(afterMs)
	for range limit + searchesMore {
		next, ok := t.Next(at)
		if len(all) >= limit || next.IsZero() || next.UnixMilli() > lastMs {
			break
		}
		if at = next; ok {
			all = append(all, next.UnixMilli())
		}
	}
	return all
}
