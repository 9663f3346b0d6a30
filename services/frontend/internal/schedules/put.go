package schedules

import (
	"bytes"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// onlyMake is the revision of a put that replaces nothing.
const onlyMake = -1

// Put makes a schedule, or replaces one (schedules.put). The same put again changes nothing.
func (s *Schedules) Put(ctx context.Context, c call.Call, req *yardv1.PutScheduleRequest) (codec.Message, error) {
	if err := validate.PutSchedule(req, c.Now, c.Form()); err != nil {
		return nil, err
	}
	data, err := encoded(req.Schedule)
	if err != nil {
		return nil, err
	}
	task := s.record(c, req.Schedule)
	if err := s.fits(c, req.Schedule, len(data)+task.SizeVT()); err != nil {
		return nil, err
	}
	home, err := s.change(ctx, c.Domain, req.Schedule.Name, func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error) {
		exists := was != nil && !was.Deleted
		if exists && bytes.Equal(was.Schedule, data) && proto.Equal(was.Task, task) {
			return nil, nil
		}
		if err := expects(req, was, exists); err != nil {
			return nil, err
		}
		if err := s.accepts(ctx, c, req.Schedule, was == nil); err != nil {
			return nil, err
		}
		if exists {
			return replaced(c, was, req.Schedule, data, task)
		}
		now := max(c.Now.UnixMilli(), was.GetCreatedAtMs()+1)
		return &logv1.ScheduleHome{
			Name: req.Schedule.Name, Schedule: data, Task: task, Revision: was.GetRevision() + 1, CreatedAtMs: now, DecidedUpToMs: now,
		}, nil
	})
	if err != nil {
		return nil, err
	}
	info, err := infoOf(home, c.Now)
	return &yardv1.PutScheduleResponse{Schedule: info}, err
}

// fits refuses a schedule that is too large for the log, or for its frequency: each run stores it again, and its task.
func (s *Schedules) fits(c call.Call, of *yardv1.Schedule, size int) error {
	times, err := timesOf(of)
	if err != nil {
		return err
	}
	first, last := c.Now.UnixMilli(), c.Now.AddDate(aheadYears, 0, 0).UnixMilli()
	next := times.upTo(first, last, frequencyTimes)
	runs := 1
	for i, at := range next {
		behind, _ := slices.BinarySearch(next, at+time.Minute.Milliseconds())
		runs = max(runs, behind-i)
	}
	if most := min(s.d.Log.MessageBytesMax()-progressBytes, minuteBytes/runs); size > most {
		return fault.At(fault.InvalidArgument, "/schedule/task", "takes %d bytes as it is stored, and %d are allowed for %d runs in a minute: make its payload smaller, or have it run less often", size, most, runs)
	}
	return nil
}

func encoded(of *yardv1.Schedule) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(of)
	if err != nil {
		return nil, fault.New(fault.Internal, "encode a schedule: %v", err)
	}
	return data, nil
}

// expects refuses a put of another revision.
func expects(req *yardv1.PutScheduleRequest, was *logv1.ScheduleHome, exists bool) error {
	switch {
	case req.Revision == onlyMake && exists:
		return fault.At(fault.AlreadyExists, "/schedule/name", "there is a schedule %q", req.Schedule.Name)
	case req.Revision > 0 && !exists:
		return fault.At(fault.Stale, "/revision", "there is no schedule %q", req.Schedule.Name)
	case req.Revision > 0 && req.Revision != was.Revision:
		return fault.At(fault.Stale, "/revision", "the schedule %q has revision %d, not %d", req.Schedule.Name, was.Revision, req.Revision)
	}
	return nil
}

// accepts refuses a put as a submit of its task is refused, and one more schedule than the domain may have.
func (s *Schedules) accepts(ctx context.Context, c call.Call, of *yardv1.Schedule, fresh bool) error {
	p := topology.SchedulePartition(c.Domain, of.Name, s.d.Partitioning)
	if !s.d.TakesTasks(p) {
		return call.StorageFull()
	}
	if err := s.d.Drained(c, validate.Single(of.Task)); err != nil {
		return validate.OfScheduleTask(err)
	}
	if !fresh {
		return nil
	}
	names, err := s.d.Names.Names(ctx, p, c.Domain)
	if n := len(names); err == nil && n >= topology.SchedulesMax {
		err = fault.New(fault.ResourceExhausted, "the domain has %d schedules with the home of this one, with those that were deleted in the last %v: %d are allowed", n, deletedFor, topology.SchedulesMax).After(call.FullRetryAfter)
	}
	return err
}

// replaced is a schedule with another content. If its times change, or it ends a pause, times that have passed are not missed.
func replaced(c call.Call, was *logv1.ScheduleHome, now *yardv1.Schedule, data []byte, task *logv1.Record) (*logv1.ScheduleHome, error) {
	before, err := scheduleOf(was)
	if err != nil {
		return nil, err
	}
	home := was.CloneVT()
	home.Schedule, home.Task, home.Revision = data, task, was.Revision+1
	if before.Paused && !now.Paused || !proto.Equal(timesOnly(before), timesOnly(now)) {
		home.DecidedUpToMs = max(c.Now.UnixMilli(), was.DecidedUpToMs)
	}
	return home, nil
}

// timesOnly is what a schedule says about its times.
func timesOnly(s *yardv1.Schedule) *yardv1.Schedule {
	return &yardv1.Schedule{
		Cron: s.Cron, EveryMs: s.EveryMs, TimeZone: s.TimeZone, ExcludeDates: s.ExcludeDates, ExcludeCron: s.ExcludeCron,
		StartAtMs: s.StartAtMs, EndAtMs: s.EndAtMs, RunsMax: s.RunsMax,
	}
}

// Pause has a schedule make no runs (schedules.pause).
func (s *Schedules) Pause(ctx context.Context, c call.Call, req *yardv1.PauseScheduleRequest) (codec.Message, error) {
	info, err := s.setPaused(ctx, c, req.Name, req.Note, true)
	return &yardv1.PauseScheduleResponse{Schedule: info}, err
}

// Resume ends the pause of a schedule (schedules.resume).
func (s *Schedules) Resume(ctx context.Context, c call.Call, req *yardv1.ResumeScheduleRequest) (codec.Message, error) {
	info, err := s.setPaused(ctx, c, req.Name, req.Note, false)
	return &yardv1.ResumeScheduleResponse{Schedule: info}, err
}

func (s *Schedules) setPaused(ctx context.Context, c call.Call, name, note string, paused bool) (*yardv1.ScheduleInfo, error) {
	if err := validate.ScheduleName(name, note); err != nil {
		return nil, err
	}
	home, err := s.changeExisting(ctx, c.Domain, name, func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error) {
		of, err := scheduleOf(was)
		if err != nil || of.Paused == paused && (note == "" || note == of.Note) {
			return nil, err
		}
		home := was.CloneVT()
		if of.Paused && !paused {
			home.DecidedUpToMs = max(c.Now.UnixMilli(), was.DecidedUpToMs)
		}
		of.Paused = paused
		if note != "" {
			of.Note = note
		}
		home.Schedule, err = encoded(of)
		home.Revision++
		return home, err
	})
	if err != nil {
		return nil, err
	}
	return infoOf(home, c.Now)
}

// Delete ends a schedule (schedules.delete).
func (s *Schedules) Delete(ctx context.Context, c call.Call, req *yardv1.DeleteScheduleRequest) (codec.Message, error) {
	if err := validate.ScheduleName(req.Name, ""); err != nil {
		return nil, err
	}
	deleted := false
	_, err := s.change(ctx, c.Domain, req.Name, func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error) {
		if was == nil || was.Deleted {
			return nil, nil
		}
		deleted = true
		return &logv1.ScheduleHome{Name: was.Name, Revision: was.Revision, CreatedAtMs: was.CreatedAtMs, DecidedUpToMs: was.DecidedUpToMs, Deleted: true}, nil
	})
	if err != nil {
		return nil, err
	}
	return &yardv1.DeleteScheduleResponse{Deleted: deleted}, nil
}
