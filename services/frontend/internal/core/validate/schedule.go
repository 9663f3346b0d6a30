package validate

import (
	"cmp"
	"math"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/schedule"
)

const (
	// ScheduleCatchUpDefault is how old a missed run may be that is made up for if nothing is said.
	ScheduleCatchUpDefault = time.Hour
	// ScheduleListDefault is how many schedules a list returns if nothing is said.
	ScheduleListDefault = 100
	// ScheduleNextMax bounds the times of one schedules.next.
	ScheduleNextMax, ScheduleNextDefault = 1000, 10
	// scheduleJitteredMax is how many times may follow within the jitter of a run.
	scheduleJitteredMax = 100
	// schedulePath is where a request has its schedule.
	schedulePath = "/schedule"
	// runsIDBytesMax bounds the request_id of a trigger or a backfill.
	runsIDBytesMax = 64
	// scheduleHeaders and scheduleHeaderBytes are what the headers of a run take that name its schedule and its time.
	scheduleHeaders, scheduleHeaderBytes = 2, 120
)

// scheduleSizes bound the task of a run.
var scheduleSizes = schedule.Sizes{Payload: PayloadBytesMax, HeaderValue: HeaderValueBytesMax, Headers: HeaderBytesMax - scheduleHeaderBytes}

// PutSchedule checks a schedules.put, and sets what it leaves out.
func PutSchedule(req *yardv1.PutScheduleRequest, now time.Time, form Form) error {
	s := req.Schedule
	if s == nil {
		return invalid(schedulePath, "is missing")
	}
	if err := firstError(name(schedulePath+"/name", s.Name), between("/revision", req.Revision, -1, math.MaxInt64)); err != nil {
		return err
	}
	if s.Task == nil {
		return invalid(schedulePath+"/task", "is missing")
	}
	if err := firstError(
		text(schedulePath+"/note", s.Note, DescriptionBytesMax),
		byItself(schedulePath+"/task", s.Task, "the task of a schedule"),
		OfScheduleTask(Submit(Single(s.Task), now, form)),
		inside(schedulePath, schedule.CheckTask(s, scheduleSizes)),
	); err != nil {
		return err
	}
	if len(s.Task.Headers) > HeadersMax-scheduleHeaders {
		return invalid(schedulePath+"/task/headers", "has %d headers, at most %d are allowed beside those that name the schedule and the time", len(s.Task.Headers), HeadersMax-scheduleHeaders)
	}
	if s.Task.Traceparent != "" {
		return invalid(schedulePath+"/task/traceparent", "the task of a schedule has none: each run is a trace of its own")
	}
	times, err := ScheduleTimes(s)
	if err != nil {
		return err
	}
	if err := jitter(s, times, now); err != nil {
		return err
	}
	s.TimeZone = cmp.Or(s.TimeZone, "UTC")
	s.Overlap = cmp.Or(s.Overlap, yardv1.Overlap_OVERLAP_SKIP)
	s.Missed = cmp.Or(s.Missed, yardv1.Missed_MISSED_LAST)
	s.CatchUpMs = cmp.Or(s.CatchUpMs, ms(ScheduleCatchUpDefault))
	return nil
}

// jitter refuses a jitter for which too many runs would wait: further ones would be late, or missed.
func jitter(s *yardv1.Schedule, times *schedule.Times, now time.Time) error {
	if s.JitterMs == 0 {
		return nil
	}
	at, ok := times.Next(now)
	last := at.UnixMilli() + s.JitterMs
	for range scheduleJitteredMax {
		if !ok || at.UnixMilli() > last {
			return nil
		}
		at, ok = times.Next(at)
	}
	if ok && at.UnixMilli() <= last {
		return invalid(schedulePath+"/jitter_ms", "is %d: the schedule has more than %d times within it, and so many runs may wait", s.JitterMs, scheduleJitteredMax)
	}
	return nil
}

// ScheduleTimes are the times of a schedule of a request. It checks all of its fields but its name and its task.
func ScheduleTimes(s *yardv1.Schedule) (*schedule.Times, error) {
	times, err := schedule.Parse(s)
	return times, inside(schedulePath, err)
}

// OfScheduleTask is what refuses the submit of a run's task as what refuses the schedule.
func OfScheduleTask(err error) error { return renamed(singlePath, schedulePath+"/task", err) }

// ScheduleName checks the name of a schedule, and the note that a request leaves with it.
func ScheduleName(s, note string) error {
	return firstError(name("/name", s), text("/note", note, DescriptionBytesMax))
}

// ListSchedules checks a schedules.list, and sets what it leaves out.
func ListSchedules(req *yardv1.ListSchedulesRequest) error {
	req.Limit = cmp.Or(req.Limit, ScheduleListDefault)
	return firstError(ifNamed(name, "/cursor", req.Cursor), between("/limit", req.Limit, 1, ListMax))
}

// TriggerSchedule checks a schedules.trigger.
func TriggerSchedule(req *yardv1.TriggerScheduleRequest) error {
	return firstError(name("/name", req.Name), text("/request_id", req.RequestId, runsIDBytesMax))
}

// BackfillSchedule checks a schedules.backfill.
func BackfillSchedule(req *yardv1.BackfillScheduleRequest, now time.Time) error {
	if err := firstError(name("/name", req.Name), text("/request_id", req.RequestId, runsIDBytesMax)); err != nil {
		return err
	}
	for _, at := range []struct {
		path string
		ms   int64
	}{{"/from_ms", req.FromMs}, {"/to_ms", req.ToMs}} {
		switch {
		case at.ms <= 0:
			return invalid(at.path, "is missing, or negative")
		case at.ms > now.UnixMilli():
			return fault.At(fault.InvalidTime, at.path, "is %d ms ahead: a backfill is of the past", at.ms-now.UnixMilli())
		}
	}
	if req.ToMs < req.FromMs {
		return invalid("/to_ms", "is before from_ms")
	}
	return nil
}

// NextSchedule checks a schedules.next but for the schedule itself, and sets what it leaves out.
func NextSchedule(req *yardv1.NextScheduleRequest, now time.Time) error {
	switch {
	case (req.Name == "") == (req.Schedule == nil):
		return invalid("/name", "want either name or schedule")
	case req.AfterMs < 0:
		return fault.At(fault.InvalidTime, "/after_ms", "is negative")
	}
	req.Limit = cmp.Or(req.Limit, ScheduleNextDefault)
	req.AfterMs = cmp.Or(req.AfterMs, now.UnixMilli())
	return firstError(ifNamed(name, "/name", req.Name), between("/limit", req.Limit, 1, ScheduleNextMax), between("/after_ms", req.AfterMs, 0, scheduleAfterMax))
}

// scheduleAfterMax is the last ms of the year 9999.
const scheduleAfterMax = 253_402_300_799_999
