package schedules

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/paging"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// nextMax is how many next times an answer has.
const nextMax = 5

// Get returns a schedule with its progress (schedules.get).
func (s *Schedules) Get(ctx context.Context, c call.Call, req *yardv1.GetScheduleRequest) (codec.Message, error) {
	if err := validate.ScheduleName(req.Name, ""); err != nil {
		return nil, err
	}
	home, err := s.existing(ctx, c.Domain, req.Name)
	if err != nil {
		return nil, err
	}
	info, err := infoOf(home, c.Now)
	return &yardv1.GetScheduleResponse{Schedule: info}, err
}

// readAtOnce is how many schedules are read at the same time, and of how many partitions the names.
const readAtOnce = 16

// List returns schedules by name (schedules.list), whatever changes meanwhile.
func (s *Schedules) List(ctx context.Context, c call.Call, req *yardv1.ListSchedulesRequest) (codec.Message, error) {
	if err := validate.ListSchedules(req); err != nil {
		return nil, err
	}
	resp, bytes := &yardv1.ListSchedulesResponse{}, 0
	err := s.each(ctx, c.Domain, req.Cursor, func(home *logv1.ScheduleHome) (more bool, err error) {
		info, err := listed(home, c.Now)
		if err != nil {
			return false, err
		}
		size := c.Size(info)
		if n := len(resp.Schedules); n == int(req.Limit) || n > 0 && bytes+size > paging.BytesMax {
			resp.NextCursor = resp.Schedules[n-1].Schedule.Name
			return false, nil
		}
		bytes += size
		resp.Schedules = append(resp.Schedules, info)
		return true, nil
	})
	return resp, err
}

// Any returns the name of one schedule of a domain; "" = there is none.
func (s *Schedules) Any(ctx context.Context, domain string) (name string, err error) {
	err = s.each(ctx, domain, "", func(home *logv1.ScheduleHome) (bool, error) {
		name = home.Name
		return false, nil
	})
	return name, err
}

// each calls f for the schedules of a domain behind a name, by name, until f returns false.
func (s *Schedules) each(ctx context.Context, domain, after string, f func(*logv1.ScheduleHome) (bool, error)) error {
	parts := make([][]string, s.d.Partitioning.History)
	err := parallel.Each(ctx, len(parts), readAtOnce, func(ctx context.Context, p int) (err error) {
		parts[p], err = s.d.Names.Names(ctx, p, domain)
		return err
	})
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(slices.Concat(parts...), func(name string) bool { return name <= after })
	slices.Sort(names)
	for some := range slices.Chunk(names, readAtOnce) {
		homes := make([]*logv1.ScheduleHome, len(some))
		err := parallel.Each(ctx, len(some), readAtOnce, func(ctx context.Context, i int) (err error) {
			homes[i], err = s.home(ctx, domain, some[i])
			return err
		})
		if err != nil {
			return err
		}
		for _, home := range homes {
			if home == nil || home.Deleted {
				continue
			}
			if more, err := f(home); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// listed is a schedule as a list shows it.
func listed(h *logv1.ScheduleHome, now time.Time) (*yardv1.ScheduleInfo, error) {
	info, err := infoOf(h, now)
	if err != nil {
		return nil, err
	}
	info.Recent = nil
	return info, nil
}

// scheduleOf is the schedule that a home has.
func scheduleOf(h *logv1.ScheduleHome) (*yardv1.Schedule, error) {
	of := &yardv1.Schedule{}
	if err := of.UnmarshalVT(h.Schedule); err != nil {
		return nil, fault.New(fault.Internal, "the schedule %q is stored and cannot be read: %v", h.Name, err)
	}
	return of, nil
}

// infoOf is a schedule as the API shows it.
func infoOf(h *logv1.ScheduleHome, now time.Time) (*yardv1.ScheduleInfo, error) {
	of, err := scheduleOf(h)
	if err != nil {
		return nil, err
	}
	info := &yardv1.ScheduleInfo{
		Schedule: of, Revision: h.Revision, CreatedAtMs: h.CreatedAtMs, Runs: h.Runs, Skipped: h.Skipped, Missed: h.Missed, Running: int32(len(h.Running)),
	}
	for _, r := range h.Due {
		if r.StartAtMs <= now.UnixMilli() {
			info.Waiting++
		}
	}
	for _, r := range h.Recent {
		info.Recent = append(info.Recent, publicRun(r))
	}
	if of.Paused {
		return info, nil
	}
	times, err := timesOf(of)
	if err != nil {
		return nil, err
	}
	info.NextMs = times.upTo(now.UnixMilli(), now.AddDate(aheadYears, 0, 0).UnixMilli(), left(of, h, nextMax))
	return info, nil
}

func publicRun(r *logv1.ScheduledRun) *yardv1.ScheduleRun {
	run := &yardv1.ScheduleRun{
		RunAtMs: r.RunAtMs, StartedAtMs: r.StartAtMs, Reason: strings.ToLower(strings.TrimPrefix(r.Reason.String(), "RUN_REASON_")),
	}
	if id, err := ids.TaskIDFromBytes(r.TaskId); err == nil {
		run.TaskId = id.String()
	}
	return run
}
