// Package schedules carries out the public verbs of schedules.
//
// Owns: the schedule as its home in the log has it: put, pause, resume, delete, and the runs that a trigger or a backfill adds. A schedule is one
// message of the log of its home partition, which is changed by compare-and-set.
//
// Never does: decide the runs of the calendar, or submit a task: the keeper of the home in the timer service does both, and stores the progress of the
// schedule in the same message.
//
// On failure: a *fault.Error that says what is known: UNAVAILABLE if nothing was stored, UNKNOWN if that is not known. A repeat of a put, a pause, a
// resume or a delete has the same effect once, and so has a trigger with a request_id.
package schedules

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/home"
)

const (
	// deletedFor is how long a deleted schedule is in the log, so that its keeper sees that.
	deletedFor = 15 * time.Minute
	// progressBytes is left free in the message of a schedule for its progress.
	progressBytes = 32 << 10
	// minuteBytes bounds what the runs of a schedule store in a minute of its calendar, each the whole schedule. The next frequencyTimes times say how
	// many those are.
	minuteBytes    = 1 << 20
	frequencyTimes = 120
)

// Log is the history log of all partitions.
type Log interface {
	home.Log
	// MessageBytesMax is the longest body it takes.
	MessageBytesMax() int
}

// Names lists schedules. Its errors are *fault.Error.
type Names interface {
	// Names are those of the schedules of a domain whose home is partition p, in any order, with those that were deleted a moment ago.
	Names(ctx context.Context, p int, domain string) ([]string, error)
}

// Deps is what the room needs. All fields are required.
type Deps struct {
	Partitioning topology.Partitioning
	Log          Log
	Names        Names
	Catalog      *catalog.Catalog
	// LogVersion is the log version to write.
	LogVersion func() uint32
	// TakesTasks reports whether the log of partition p has space for tasks.
	TakesTasks func(p int) bool
	// Drained refuses a submit whose domain, tasklist, type or group is drained.
	Drained func(c call.Call, req *yardv1.SubmitRequest) error
	// AppendTimeout bounds one try to store a schedule.
	AppendTimeout time.Duration
}

// Schedules carries out requests. It is safe for concurrent use.
type Schedules struct{ d Deps }

// New makes the room.
func New(d Deps) *Schedules { return &Schedules{d} }

// place is where the log has a schedule.
func (s *Schedules) place(domain, name string) home.Place {
	p := topology.SchedulePartition(domain, name, s.d.Partitioning)
	return home.Place{Partition: p, Subject: topology.ScheduleHome(p, domain, name), Noun: "schedule"}
}

// home reads a schedule; nil = there is none, and there was none a moment ago.
func (s *Schedules) home(ctx context.Context, domain, name string) (*logv1.ScheduleHome, error) {
	h, _, err := home.Read[logv1.ScheduleHome](ctx, s.d.Log, s.place(domain, name))
	return h, err
}

// existing reads a schedule that there is.
func (s *Schedules) existing(ctx context.Context, domain, name string) (*logv1.ScheduleHome, error) {
	h, err := s.home(ctx, domain, name)
	if err == nil && (h == nil || h.Deleted) {
		err = notFound(name)
	}
	return h, err
}

func notFound(name string) error {
	return fault.At(fault.NotFound, "/name", "there is no schedule %q", name)
}

// change changes a schedule as home.Change does.
func (s *Schedules) change(ctx context.Context, domain, name string, f func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error)) (*logv1.ScheduleHome, error) {
	kept := func(h *logv1.ScheduleHome, m natslog.Msg) natslog.Msg {
		if h.Deleted {
			return m.InPlace(deletedFor)
		}
		return m.Only()
	}
	return home.Change(ctx, s.d.Log, s.place(domain, name), s.d.AppendTimeout, kept, func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error) {
		now, err := f(was)
		if now != nil {
			now.LogVersion = s.d.LogVersion()
		}
		return now, err
	})
}

// changeExisting is change of a schedule that there is.
func (s *Schedules) changeExisting(ctx context.Context, domain, name string, f func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error)) (*logv1.ScheduleHome, error) {
	return s.change(ctx, domain, name, func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error) {
		if was == nil || was.Deleted {
			return nil, notFound(name)
		}
		return f(was)
	})
}

// record is the task of a run as it goes into the log, without an id.
func (s *Schedules) record(c call.Call, of *yardv1.Schedule) *logv1.Record {
	return validate.Accept(validate.Single(of.Task), call.Terms(s.d.Catalog, c.Domain, c.Now)).Records[0]
}
