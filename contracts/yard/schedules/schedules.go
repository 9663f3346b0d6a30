// Package schedules manages schedules: tasks that the engine submits again and again, at times of a calendar.
//
// Owns: the Go form of schedules, and their calls. Never does: compute times; the engine does. On failure: every call returns a *fault.Error, matched by
// code as those of package yard are. All calls are safe to repeat, and are repeated as the Client's are.
//
//	all := schedules.Of(client)
//	info, err := all.Put(ctx, schedules.Schedule{
//		Name: "nightly", Task: yard.Task{Type: "report.build", Tasklist: "reports"}, Cron: []string{"30 2 * * *"}, TimeZone: "Europe/Berlin",
//	})
package schedules

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Overlap says what follows if a run is due and the task of an earlier one has not ended.
type Overlap string

// The rules of overlap.
const (
	// OverlapSkip: the run is skipped.
	OverlapSkip Overlap = "skip"
	// OverlapBufferOne: it starts when the earlier one has ended. Of several such runs the first one starts, and the others are skipped.
	OverlapBufferOne Overlap = "buffer_one"
	// OverlapBufferAll: it starts when the earlier ones have ended, one after the other. At most 100 wait; further ones are skipped.
	OverlapBufferAll Overlap = "buffer_all"
	// OverlapAllow: it starts at once.
	OverlapAllow Overlap = "allow"
	// OverlapCancelOther: the task of the earlier run is cancelled, and the run starts when that has ended. Of several such runs the last one starts.
	OverlapCancelOther Overlap = "cancel_other"
)

// Missed says which runs are made up for if the engine was down at their times, for 10 s or more.
type Missed string

// The rules of missed runs.
const (
	// MissedAll: all runs within CatchUp, oldest first, by the rule of overlap.
	MissedAll Missed = "all"
	// MissedLast: the last one within CatchUp.
	MissedLast Missed = "last"
	// MissedSkip: none.
	MissedSkip Missed = "skip"
)

// Schedule says when which task is submitted. Each of its times makes one run, exactly once. It has Cron or Every, or both.
type Schedule struct {
	// Name is unique in the domain. [A-Za-z0-9_-]{1,64}. Required.
	Name string
	// Task is the task of each run. Required. It has no Delay, RunAt, Unique, OrderKey, Batch and Traceparent. In a JSON payload and in the values of headers
	// these texts are replaced: {{run_at}} by the time of the run in the time zone (RFC 3339), {{run_at_ms}} by the same as Unix ms, {{run_date}} by its
	// date (2026-11-30), and {{schedule}} by the name. Settings of its type and tasklist are taken when the schedule is put.
	Task yard.Task
	// Cron are up to 16 cron expressions: five fields (minute, hour, day of month, month, day of week), or six with the seconds first; @yearly, @monthly,
	// @weekly, @daily, @hourly. If both days are restricted, one of them is enough.
	Cron []string
	// Every has a run each time it has passed, 1 s to 366 days, counted from StartAt, or from the epoch of Unix time. Default: none.
	Every time.Duration
	// TimeZone is the IANA name of the zone of Cron and of the exclusions, such as Europe/Berlin. Default: UTC. If clocks go forward, times that do not
	// exist run once, at the moment of the change. If clocks go back, times that exist twice run the first time; expressions for every hour run both times.
	TimeZone string
	// ExcludeDates are days without runs: 2026-12-24, or 12-24 for each year. At most 400.
	ExcludeDates []string
	// ExcludeCron are up to 16 cron expressions: times that match one of them have no run.
	ExcludeCron []string
	// Jitter makes each run later by up to so much, always the same for the same time, up to a day. Default: none.
	Jitter time.Duration
	// StartAt and EndAt bound the times: no run is before StartAt, and none at or after EndAt. Default: no bound.
	StartAt, EndAt time.Time
	// RunsMax is how many runs there are at most, 1..1000000000; triggers and backfills do not count. Default 0 = any number.
	RunsMax int64
	// Overlap says what follows if a run is due and the task of an earlier one has not ended. Default: OverlapSkip.
	Overlap Overlap
	// Missed says which runs are made up for if the engine was down at their times. Default: MissedLast.
	Missed Missed
	// CatchUp is how old a missed run may be that is made up for, 1 ms to 366 days. Default: an hour.
	CatchUp time.Duration
	// Paused: it makes no runs. Times that pass meanwhile are not missed.
	Paused bool
	// Note is for people, at most 1024 bytes.
	Note string
}

// Run is a run of a schedule.
type Run struct {
	// RunAt is the time that it is for: of the calendar, or of the trigger.
	RunAt time.Time
	// StartedAt is when its task was submitted; the zero time = it was not.
	StartedAt time.Time
	// TaskID is its task; "" = none was submitted.
	TaskID string
	// Reason is why there is a run, or none: scheduled, trigger, backfill, overlap (skipped), missed.
	Reason string
}

// Info is a schedule and its progress.
type Info struct {
	// Schedule is as it was put, with defaults.
	Schedule Schedule
	// Revision changes with each put, pause and resume.
	Revision int64
	// CreatedAt is when it was made.
	CreatedAt time.Time
	// Next are the next times of the calendar, without jitter, at most 5; none if it is paused or over.
	Next []time.Time
	// Recent are the last 20 runs, newest first. Lists do not have them.
	Recent []Run
	// Runs, Skipped and Missed count the runs of the calendar: those whose tasks were submitted, those that were skipped for an overlap, and those missed.
	Runs, Skipped, Missed int64
	// Waiting is how many runs wait for an earlier one to end, Running how many tasks of its runs had not ended when that was last checked.
	Waiting, Running int

	wire *yardv1.ScheduleInfo
}

// Wire is i as it travels.
func (i *Info) Wire() *yardv1.ScheduleInfo { return i.wire }

// Schedules are the schedules of a domain. It is safe for concurrent use.
type Schedules struct{ c *yard.Client }

// Of returns the schedules of the client's domain. Nothing is asked.
func Of(c *yard.Client) Schedules { return Schedules{c} }

// Put makes a schedule, or replaces one. Its last runs, its counts and the runs that wait are kept. Times before the put have no run. The errors: INVALID_ARGUMENT
// with the path of the field, RESOURCE_EXHAUSTED if the domain has too many schedules, FAILED_PRECONDITION if what the task names is drained.
func (s Schedules) Put(ctx context.Context, schedule Schedule) (*Info, error) {
	return s.put(ctx, schedule, 0)
}

// Create is Put, but ALREADY_EXISTS if there is another schedule of the name.
func (s Schedules) Create(ctx context.Context, schedule Schedule) (*Info, error) {
	return s.put(ctx, schedule, -1)
}

// Replace is Put, but STALE if the schedule has another revision.
func (s Schedules) Replace(ctx context.Context, schedule Schedule, revision int64) (*Info, error) {
	return s.put(ctx, schedule, revision)
}

func (s Schedules) put(ctx context.Context, schedule Schedule, revision int64) (*Info, error) {
	wire, err := schedule.Wire()
	if err != nil {
		return nil, err
	}
	resp, err := yard.Call[yardv1.PutScheduleResponse](ctx, s.c, "schedules.put", &yardv1.PutScheduleRequest{Schedule: wire, Revision: revision})
	return infoOf(resp.GetSchedule()), err
}

// Get returns a schedule, or NOT_FOUND.
func (s Schedules) Get(ctx context.Context, name string) (*Info, error) {
	resp, err := yard.Call[yardv1.GetScheduleResponse](ctx, s.c, "schedules.get", &yardv1.GetScheduleRequest{Name: name})
	return infoOf(resp.GetSchedule()), err
}

// All yields the schedules of the domain by name, and asks for them page by page. An error is the last that it yields.
func (s Schedules) All(ctx context.Context) iter.Seq2[*Info, error] {
	return func(yield func(*Info, error) bool) {
		for cursor, more := "", true; more; more = cursor != "" {
			resp, err := yard.Call[yardv1.ListSchedulesResponse](ctx, s.c, "schedules.list", &yardv1.ListSchedulesRequest{Cursor: cursor})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, w := range resp.Schedules {
				if !yield(infoOf(w), nil) {
					return
				}
			}
			cursor = resp.NextCursor
		}
	}
}

// Delete ends a schedule, and reports whether there was one. Tasks of its runs go on.
func (s Schedules) Delete(ctx context.Context, name string) (deleted bool, err error) {
	resp, err := yard.Call[yardv1.DeleteScheduleResponse](ctx, s.c, "schedules.delete", &yardv1.DeleteScheduleRequest{Name: name})
	return resp.GetDeleted(), err
}

// Pause has a schedule make no runs until Resume. A note replaces that of the schedule; "" = it is kept.
func (s Schedules) Pause(ctx context.Context, name, note string) (*Info, error) {
	resp, err := yard.Call[yardv1.PauseScheduleResponse](ctx, s.c, "schedules.pause", &yardv1.PauseScheduleRequest{Name: name, Note: note})
	return infoOf(resp.GetSchedule()), err
}

// Resume ends a pause. Times that have passed are not missed. A note replaces that of the schedule; "" = it is kept.
func (s Schedules) Resume(ctx context.Context, name, note string) (*Info, error) {
	resp, err := yard.Call[yardv1.ResumeScheduleResponse](ctx, s.c, "schedules.resume", &yardv1.ResumeScheduleRequest{Name: name, Note: note})
	return infoOf(resp.GetSchedule()), err
}

// Trigger has a schedule make one run now, also a paused one, whatever its overlap says. It returns the time of the run: RunAt among Info.Recent. A
// request id of 1..64 bytes makes no other run while its run is among the last 20; "" = each call is another one.
func (s Schedules) Trigger(ctx context.Context, name, requestID string) (runAt time.Time, err error) {
	req := &yardv1.TriggerScheduleRequest{Name: name, RequestId: cmp.Or(requestID, rand.Text())}
	resp, err := yard.Call[yardv1.TriggerScheduleResponse](ctx, s.c, "schedules.trigger", req)
	return instant(resp.GetRunAtMs()), err
}

// Backfill has a schedule make the runs of a stretch of the past again, both ends included, by the rule of overlap; OverlapSkip counts as OverlapBufferAll. It
// returns how many times the stretch has. At most 100 runs wait, else RESOURCE_EXHAUSTED.
func (s Schedules) Backfill(ctx context.Context, name string, from, to time.Time) (runs int, err error) {
	req := &yardv1.BackfillScheduleRequest{Name: name, FromMs: from.UnixMilli(), ToMs: to.UnixMilli(), RequestId: rand.Text()}
	resp, err := yard.Call[yardv1.BackfillScheduleResponse](ctx, s.c, "schedules.backfill", req)
	return int(resp.GetRuns()), err
}

// Next returns the next times of a schedule after an instant, without jitter, at most limit (1..1000; 0 = 10). The zero time is now.
func (s Schedules) Next(ctx context.Context, name string, after time.Time, limit int) ([]time.Time, error) {
	return s.next(ctx, &yardv1.NextScheduleRequest{Name: name}, after, limit)
}

// NextOf is Next of a schedule that need not exist. Its Name and Task do not matter.
func (s Schedules) NextOf(ctx context.Context, schedule Schedule, after time.Time, limit int) ([]time.Time, error) {
	schedule.Task = yard.Task{}
	wire, err := schedule.Wire()
	if err != nil {
		return nil, err
	}
	wire.Task = nil
	return s.next(ctx, &yardv1.NextScheduleRequest{Schedule: wire}, after, limit)
}

func (s Schedules) next(ctx context.Context, req *yardv1.NextScheduleRequest, after time.Time, limit int) ([]time.Time, error) {
	req.Limit, req.AfterMs = int32(min(max(limit, math.MinInt32), math.MaxInt32)), unixMs(after)
	resp, err := yard.Call[yardv1.NextScheduleResponse](ctx, s.c, "schedules.next", req)
	return instants(resp.GetNextMs()), err
}

// Wire is s as it travels. The error is INVALID_ARGUMENT: its task or one of its rules cannot be written.
func (s Schedule) Wire() (*yardv1.Schedule, error) {
	task, err := s.Task.Wire()
	if err != nil {
		e := fault.From(err)
		return nil, fault.At(e.Code, "/schedule/task"+cmp.Or(e.Path, "/payload"), "%s", e.Message)
	}
	w := &yardv1.Schedule{
		Name: s.Name, Task: task, Cron: s.Cron, EveryMs: milliseconds(s.Every), TimeZone: s.TimeZone, ExcludeDates: s.ExcludeDates, ExcludeCron: s.ExcludeCron,
		JitterMs: milliseconds(s.Jitter), StartAtMs: unixMs(s.StartAt), EndAtMs: unixMs(s.EndAt), RunsMax: s.RunsMax, CatchUpMs: milliseconds(s.CatchUp),
		Paused: s.Paused, Note: s.Note,
	}
	if err := w.Overlap.UnmarshalText([]byte(s.Overlap)); err != nil {
		return nil, fault.At(fault.InvalidArgument, "/schedule/overlap", "%v", err)
	}
	if err := w.Missed.UnmarshalText([]byte(s.Missed)); err != nil {
		return nil, fault.At(fault.InvalidArgument, "/schedule/missed", "%v", err)
	}
	return w, nil
}

func infoOf(w *yardv1.ScheduleInfo) *Info {
	if w == nil {
		return nil
	}
	i := &Info{
		wire: w, Schedule: scheduleOf(w.Schedule), Revision: w.Revision, CreatedAt: instant(w.CreatedAtMs), Next: instants(w.NextMs),
		Runs: w.Runs, Skipped: w.Skipped, Missed: w.Missed, Waiting: int(w.Waiting), Running: int(w.Running),
	}
	for _, r := range w.Recent {
		i.Recent = append(i.Recent, Run{RunAt: instant(r.RunAtMs), StartedAt: instant(r.StartedAtMs), TaskID: r.TaskId, Reason: r.Reason})
	}
	return i
}

func scheduleOf(w *yardv1.Schedule) Schedule {
	return Schedule{
		Name: w.GetName(), Task: taskOf(w.GetTask()), Cron: w.GetCron(), Every: duration(w.GetEveryMs()), TimeZone: w.GetTimeZone(),
		ExcludeDates: w.GetExcludeDates(), ExcludeCron: w.GetExcludeCron(), Jitter: duration(w.GetJitterMs()),
		StartAt: instant(w.GetStartAtMs()), EndAt: instant(w.GetEndAtMs()), RunsMax: w.GetRunsMax(),
		Overlap: Overlap(strings.TrimPrefix(w.GetOverlap().Name(), "unspecified")), Missed: Missed(strings.TrimPrefix(w.GetMissed().Name(), "unspecified")),
		CatchUp: duration(w.GetCatchUpMs()), Paused: w.GetPaused(), Note: w.GetNote(),
	}
}

// taskOf is the task of a schedule, which has no time and no key of its own.
func taskOf(w *yardv1.NewTask) yard.Task {
	t := yard.Task{
		Type: w.GetType(), Tasklist: w.GetTasklist(), Priority: int(w.GetPriority()), Retry: yard.RetryPolicyOf(w.GetRetry()),
		StartToClose: duration(w.GetStartToCloseMs()), HeartbeatTimeout: duration(w.GetHeartbeatTimeoutMs()),
		StartWithin: duration(w.GetStartWithinMs()), FinishWithin: duration(w.GetFinishWithinMs()),
		Headers: w.GetHeaders(), Group: w.GetGroup(), Cost: int(w.GetCost()),
	}
	if p := w.GetPayload(); p != nil {
		t.Payload = yard.Payload{Data: p.Data, Binary: p.Encoding == yardv1.Encoding_ENCODING_BINARY}
	}
	return t
}

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// milliseconds rounds up, so that no time becomes none.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > 0 && d%time.Millisecond != 0 {
		ms++
	}
	return ms
}

// instant is a Unix time in ms; 0 = none.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func instants(all []int64) (out []time.Time) {
	for _, ms := range all {
		out = append(out, time.UnixMilli(ms))
	}
	return out
}

// unixMs is the inverse of instant.
func unixMs(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
