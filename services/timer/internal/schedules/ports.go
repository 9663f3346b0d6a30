package schedules

import (
	"context"
	"errors"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// ErrChanged: something else was stored of the schedule since it was loaded.
var ErrChanged = errors.New("the schedule has changed")

// Name names a schedule.
type Name struct{ Domain, Schedule string }

// Loaded is a schedule as it is stored.
type Loaded struct {
	// Seq is that of its message.
	Seq  uint64
	Home *logv1.ScheduleHome
}

// Store is the history log of the partition, as far as schedules go.
type Store interface {
	// Follow hands out each schedule as it is stored, those that there are first, until ctx ends. It returns nil then, or handle's error, or that the log has a
	// version which this program does not know.
	Follow(ctx context.Context, handle func(Name, Loaded) error) error
	// Load returns a schedule as it is now; nil = there is none.
	Load(ctx context.Context, n Name) (*Loaded, error)
	// Change stores a schedule in place of what was loaded, and tasks with it: all or nothing. ErrChanged: something else is stored. After another error
	// it may be stored. It returns the sequence of the schedule's message.
	Change(ctx context.Context, n Name, was uint64, home *logv1.ScheduleHome, tasks []*logv1.Record) (seq uint64, err error)
}

// History is what knows of tasks.
type History interface {
	// Ended tells whether a task of a domain has ended, or is nowhere.
	Ended(ctx context.Context, domain string, id ids.TaskID) (bool, error)
	// Cancel has a task cancelled. It may be lost.
	Cancel(domain string, id ids.TaskID) error
}
