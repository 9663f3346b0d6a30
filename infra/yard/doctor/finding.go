package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Finding is one inconsistency.
type Finding struct {
	Code      Code   `json:"code"`
	Invariant string `json:"invariant,omitempty"`
	// Where is the stream and the message, the partition, or the key.
	Where string `json:"where"`
	// Task is the printed id of the task, if it is about one, and Domain whose it is, if that is known.
	Task   string `json:"task,omitempty"`
	Domain string `json:"domain,omitempty"`
	// The text in What tells what was seen, in Means what is wrong with that, in Do what to do about it.
	What  string `json:"what"`
	Means string `json:"means"`
	Do    string `json:"do"`
	// Repair says what --repair does about it; empty = nothing.
	Repair string `json:"repair,omitempty"`
	// Repaired: it did. RepairError says why it did not.
	Repaired    bool   `json:"repaired,omitempty"`
	RepairError string `json:"repair_error,omitempty"`

	section section
	id      ids.TaskID
	// batch is the subject of the batch that it is about; batchID is its name, if that is known.
	batch, batchID string
	mend           func(context.Context) error
}

// section is a part of the cluster that is looked at by itself.
type section struct {
	kind      string
	partition int
}

// The kinds of sections.
const (
	sectionStreams    = "streams"
	sectionOwners     = "owners"
	sectionQuarantine = "quarantine"
	sectionPartition  = "partition"
	sectionTables     = "tables"
)

// evidence is what must be the same each time that a finding is looked at.
type evidence struct {
	code        Code
	where, task string
}

func (f *Finding) evidence() evidence { return evidence{f.Code, f.Where, f.Task} }

// complete fills in what the kind says.
func (f *Finding) complete() {
	k := KindOf(f.Code)
	if f.id != (ids.TaskID{}) {
		f.Task = f.id.String()
	}
	f.Invariant, f.Means, f.Repair = k.Invariant, k.Means, k.Repair
	_, item, _ := strings.Cut(f.Where, itemPrefix)
	f.Do = strings.NewReplacer("<task>", f.Task, "<place>", f.Where, "<item>", item, "<batch>", cmp.Or(f.batchID, "BATCH"), "<domain>", cmp.Or(f.Domain, "DOMAIN")).Replace(k.Do)
}

// itemPrefix precedes the number of an item in quarantine.
const itemPrefix = "item "

// Report is what was found.
type Report struct {
	// Findings by kind, then by place.
	Findings []Finding `json:"findings"`
	// More are how many findings of a code there are beside those: only Options.FindingsMax of each are kept.
	More map[Code]int `json:"more,omitempty"`
	// Unchecked is what could not be looked at, or not be said, and why.
	Unchecked []string `json:"unchecked"`
	// Scanned counts what was read.
	Scanned Scanned `json:"looked"`
}

// Scanned is how much was read in the first look.
type Scanned struct {
	Partitions int `json:"partitions"`
	// Waiting are stays in timer stores, Logged records of tasks in logs, Archived records of finished tasks.
	Waiting     int64 `json:"waiting"`
	Logged      int64 `json:"logged"`
	Archived    int64 `json:"archived"`
	DeadLetters int64 `json:"dead_letters"`
	Keys        int64 `json:"unique_keys"`
	Limits      int64 `json:"limits"`
	// Batches are those whose home is here, and that are kept.
	Batches int64 `json:"batches"`
	// Schedules are those that exist.
	Schedules int64 `json:"schedules"`
	// Passes are how often partitions were read, in all.
	Passes int `json:"passes"`
}

// Clean tells that nothing was found, or all that was is repaired.
func (r *Report) Clean() bool { return r.Count() == 0 }

// Count is how many findings there are that are not repaired.
func (r *Report) Count() int {
	n := 0
	for _, f := range r.Findings {
		if !f.Repaired {
			n++
		}
	}
	for _, more := range r.More {
		n += more
	}
	return n
}

func (r *Report) sort() {
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Code), rank(b.Code)), cmp.Compare(a.section.partition, b.section.partition), strings.Compare(a.Where, b.Where), strings.Compare(a.Task, b.Task))
	})
}

// Options of Examine. The zero value of a field is its default.
type Options struct {
	// Looks is how often something must be found, at the same place, to be reported. Default 3, at least 2.
	Looks int
	// Wait is how long the next look waits. Default 3 s: a purge, a takeover and a write that is repeated are over by then.
	Wait time.Duration
	// TasksMax bounds the tasks that are held in memory at once, at 75 to 130 bytes each. Default 2,000,000.
	TasksMax int
	// FindingsMax bounds the findings of each code that are kept. Default 100.
	FindingsMax int
	// Progress is called with what is being looked at. Default: nothing is.
	Progress func(what string)

	// ahead is added to the server's time, for tests of what is old.
	ahead time.Duration
}

// Defaults of Options.
const (
	looksMin           = 2
	looksDefault       = 3
	waitDefault        = 3 * time.Second
	tasksMaxDefault    = 2_000_000
	findingsMaxDefault = 100
)

func (o Options) withDefaults() Options {
	o.Looks = max(cmp.Or(o.Looks, looksDefault), looksMin)
	o.Wait = cmp.Or(o.Wait, waitDefault)
	o.TasksMax = cmp.Or(o.TasksMax, tasksMaxDefault)
	o.FindingsMax = cmp.Or(o.FindingsMax, findingsMaxDefault)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}
