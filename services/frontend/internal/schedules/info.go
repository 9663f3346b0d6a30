package schedules

import (
	"context"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// nextMax is how many next times an answer has.
const nextMax = 5

// Get returns a schedule with its progress (schedules.get).
func (s *Schedules) Get(ctx context.Context, c Call, req *yardv1.GetScheduleRequest) (codec.Message, error) {
	if err := validate.ScheduleName(req.Name, ""); err != nil {
		return nil, err
	}
	home, err := s.existing(ctx, c.Domain, req.Name)
	if err != nil {
		return nil, err
	}
	info, err := infoOf(home, c.Now())
	return &yardv1.GetScheduleResponse{Schedule: info}, err
}

// List returns schedules (schedules.list): those of one partition after the other, in the order in which they were changed last.
func (s *Schedules) List(ctx context.Context, c Call, req *yardv1.ListSchedulesRequest) (codec.Message, error) {
	from, err := validate.ListSchedules(req, s.d.Partitioning.History)
	if err != nil {
		return nil, err
	}
	resp, bytes := &yardv1.ListSchedulesResponse{}, 0
	for from.Partition < s.d.Partitioning.History {
		page, more, err := s.d.Homes.Page(ctx, from.Partition, c.Domain, from.After, int(req.Limit)-len(resp.Schedules))
		if err != nil {
			return nil, err
		}
		for _, kept := range page {
			if !kept.Home.Deleted {
				info, err := listed(kept.Home, c.Now())
				if err != nil {
					return nil, err
				}
				size, err := sizeOf(c, info)
				if err != nil {
					return nil, err
				}
				if bytes += size; bytes > paging.BytesMax && len(resp.Schedules) > 0 {
					resp.NextCursor = from.Cursor()
					return resp, nil
				}
				resp.Schedules = append(resp.Schedules, info)
			}
			from.After = kept.Seq
		}
		if !more {
			from = validate.BatchPage{Partition: from.Partition + 1}
		}
		if len(resp.Schedules) >= int(req.Limit) && from.Partition < s.d.Partitioning.History {
			resp.NextCursor = from.Cursor()
			break
		}
	}
	return resp, nil
}

// Any returns the name of one schedule of a domain; "" = there is none.
func (s *Schedules) Any(ctx context.Context, domain string) (string, error) {
	for p := range s.d.Partitioning.History {
		for after, more := uint64(0), true; more; {
			page, others, err := s.d.Homes.Page(ctx, p, domain, after, validate.ScheduleListDefault)
			if err != nil {
				return "", err
			}
			for _, kept := range page {
				if !kept.Home.Deleted {
					return kept.Home.Name, nil
				}
				after = kept.Seq
			}
			more = others
		}
	}
	return "", nil
}

// sizeOf is how many bytes m takes in the answer.
func sizeOf(c Call, m codec.Message) (int, error) {
	form := codec.Protobuf
	if c.JSON {
		form = codec.JSON
	}
	data, err := codec.Marshal(form, m)
	return len(data), err
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
