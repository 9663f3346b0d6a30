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
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
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
	// againFirst and againLast are the waits between two tries to store a schedule.
	againFirst, againLast = 10 * time.Millisecond, 500 * time.Millisecond
	// awayAfter, fullAfter and storageAfter are how long a client must wait: for the log, for a place, for space in the log.
	awayAfter, fullAfter, storageAfter = 500 * time.Millisecond, 100 * time.Millisecond, time.Second
)

// Call is what is known of a request besides its body.
type Call struct {
	// Domain exists.
	Domain string
	// JSON says how the request was written, and so how it is answered.
	JSON bool
	// Now is the server's clock.
	Now func() time.Time
}

func (c Call) nowMs() int64 { return c.Now().UnixMilli() }

// Log is the history log of all partitions.
type Log interface {
	// Append stores one message; its errors wrap natslog.ErrNotStored or natslog.ErrOutcomeUnknown.
	Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error)
	// LastFor returns the last message of a subject in partition p; nil if there is none.
	LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error)
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
	Drained func(domain string, now time.Time, req *yardv1.SubmitRequest) error
	// AppendTimeout bounds one try to store a schedule.
	AppendTimeout time.Duration
}

// Schedules carries out requests. It is safe for concurrent use.
type Schedules struct{ d Deps }

// New makes the room.
func New(d Deps) *Schedules { return &Schedules{d} }

// home reads a schedule; nil = there is none, and there was none a moment ago. Seq is where it lies.
func (s *Schedules) home(ctx context.Context, domain, name string) (h *logv1.ScheduleHome, seq uint64, err error) {
	p := topology.SchedulePartition(domain, name, s.d.Partitioning)
	m, err := s.d.Log.LastFor(ctx, p, topology.ScheduleHome(p, domain, name))
	if err != nil {
		return nil, 0, fault.New(fault.Unavailable, "the log does not answer: %v", err).After(awayAfter)
	}
	if m == nil {
		return nil, 0, nil
	}
	h, err = Decode(p, m)
	return h, m.Seq, err
}

// Decode reads a schedule that the log of partition p has. Its error is a *fault.Error.
func Decode(p int, m *natslog.Record) (*logv1.ScheduleHome, error) {
	h := &logv1.ScheduleHome{}
	if err := h.UnmarshalVT(m.Data); err != nil {
		return nil, fault.New(fault.Internal, "message %d of partition %d is no schedule: %v", m.Seq, p, err)
	}
	if err := logversion.Check(h.LogVersion); err != nil {
		return nil, fault.New(fault.Internal, "message %d of partition %d: %v", m.Seq, p, err)
	}
	return h, nil
}

// existing reads a schedule that there is.
func (s *Schedules) existing(ctx context.Context, domain, name string) (*logv1.ScheduleHome, error) {
	h, _, err := s.home(ctx, domain, name)
	if err == nil && (h == nil || h.Deleted) {
		err = notFound(name)
	}
	return h, err
}

func notFound(name string) error {
	return fault.At(fault.NotFound, "/name", "there is no schedule %q", name)
}

// change stores what f makes of a schedule, nil = as it is, over what it was made of. It returns the schedule as it is then. If it is not known whether
// it was stored, the schedule is read again.
func (s *Schedules) change(ctx context.Context, domain, name string, f func(was *logv1.ScheduleHome) (*logv1.ScheduleHome, error)) (*logv1.ScheduleHome, error) {
	for delay := backoff.New(againFirst, againLast); ; {
		was, seq, err := s.home(ctx, domain, name)
		if err != nil {
			return nil, err
		}
		home, err := f(was)
		if err != nil || home == nil {
			return was, err
		}
		err = s.store(ctx, domain, home, seq)
		var refused *fault.Error
		switch {
		case err == nil:
			return home, nil
		case errors.As(err, &refused):
			return nil, err
		case errors.Is(err, natslog.ErrFull):
			return nil, storageFull()
		}
		delay.Sleep(ctx)
		if ctx.Err() != nil {
			code := fault.Unavailable
			if !errors.Is(err, natslog.ErrNotStored) {
				code = fault.Unknown
			}
			return nil, fault.New(code, "the log did not say in time that the schedule is stored: repeat the request").After(awayAfter)
		}
	}
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

// store appends a schedule in the place of message seq. Its error is a *fault.Error if no repeat can help, else that of the log.
func (s *Schedules) store(ctx context.Context, domain string, home *logv1.ScheduleHome, seq uint64) error {
	home.LogVersion = s.d.LogVersion()
	data, err := home.MarshalVT()
	if err != nil {
		return fault.New(fault.Internal, "encode a schedule: %v", err)
	}
	p := topology.SchedulePartition(domain, home.Name, s.d.Partitioning)
	m := natslog.Msg{Subject: topology.ScheduleHome(p, domain, home.Name), Data: data}
	if home.Deleted {
		m = m.InPlace(deletedFor)
	} else {
		m = m.Only()
	}
	once, cancel := context.WithTimeout(ctx, s.d.AppendTimeout)
	defer cancel()
	_, _, err = s.d.Log.Append(once, m.Over(seq))
	return err
}

func storageFull() error {
	return fault.New(fault.ResourceExhausted, "the log's storage is full: nothing was stored; give JetStream more room, or wait until finished tasks are forgotten, and repeat the request").After(storageAfter)
}

// record is the task of a run as it goes into the log, without an id.
func (s *Schedules) record(c Call, of *yardv1.Schedule) *logv1.Record {
	return validate.Accept(validate.Single(of.Task), validate.Terms{
		Domain: c.Domain, Now: c.Now(), Trace: func(string) []byte { return nil },
		Type:     func(name string) *yardv1.TaskType { return catalog.Types.Of(s.d.Catalog, c.Domain, name) },
		Tasklist: func(name string) *yardv1.Tasklist { return catalog.Tasklists.Of(s.d.Catalog, c.Domain, name) },
	}).Records[0]
}
