// Package explain says why a task does not start now.
//
// Owns: which reasons there are, their order, and their sentences. Never does: ask an owner, or read a clock: all that is known comes in as Facts.
//
// On failure: nothing can fail. If facts are missing, a reason says so, or is marked as a snapshot (About).
//
// Each reason alone keeps the task waiting, so a task that is paused and not due has both. Reasons come in the order in which a task meets them: its own time, the
// log, its order key, operators, limits, workers. A worker that is busy is a reason only if there is no other one: while something else keeps the task
// waiting, polls need not be where matching sees them.
package explain

import (
	"fmt"
	"slices"
)

// Code names a kind of reason.
type Code string

// The codes. ExplainResponse of the API says what each of them means.
const (
	Finished        Code = "FINISHED"
	Running         Code = "RUNNING"
	DueLater        Code = "DUE_LATER"
	Backoff         Code = "BACKOFF"
	Blocked         Code = "BLOCKED"
	NotAdmitted     Code = "NOT_ADMITTED"
	BehindOrderKey  Code = "BEHIND_ORDER_KEY"
	Suspended       Code = "SUSPENDED"
	Paused          Code = "PAUSED"
	LimitFull       Code = "LIMIT_FULL"
	LimitUnknown    Code = "LIMIT_UNKNOWN"
	Rate            Code = "RATE"
	MatchingSilent  Code = "MATCHING_SILENT"
	NoWorker        Code = "NO_WORKER"
	NoWorkerForType Code = "NO_WORKER_FOR_TYPE"
	NoWorkerFree    Code = "NO_WORKER_FREE"
	Drained         Code = "DRAINED"
)

// State is what of its state keeps a task waiting.
type State int

// The states.
const (
	// Ready: nothing of it does.
	Ready State = iota
	// Waits: it is not due. Fails: it waits for its next attempt. Queued: it is on disk.
	Waits
	Fails
	Queued
	// Runs: a worker has it. Ended: it does not start any more.
	Runs
	Ended
)

// Task is what is known of the task itself.
type Task struct {
	State State
	// Ended is how an ended one ended, such as "completed".
	Ended string
	// DueMS is when it is due, SinceMS since when it is in its state, Unix ms; 0 = not known.
	DueMS, SinceMS        int64
	Domain, Tasklist      string
	Type, Group, OrderKey string
	// Worker is the one that runs it. Failures counts its failed attempts, Failure says how the last one failed.
	Worker   string
	Failures int
	Failure  string
	// Blocks: it failed for good and blocks its order key.
	Blocks bool
}

// Queue is what of the log is read before a task on disk.
type Queue struct {
	// Ref names the queue: its lane, and the domain and the tasklist that are split off.
	Ref string
	// Unread counts its messages that are not read, if it has no other domain's: Own. LowClass: its domain is over its full weight.
	Unread        int64
	Own, LowClass bool
}

// First is the first task of the order key of a task that waits for its turn.
type First struct {
	TaskID string
	// State is its state, such as "running". DueMS is when it is due, if its time has not come, Unix ms.
	State  string
	DueMS  int64
	Worker string
	// Blocks: it failed for good and blocks the key. Why says how.
	Blocks bool
	Why    string
	// Waiting counts the tasks behind it.
	Waiting int64
}

// Pause is a pause that covers the task.
type Pause struct {
	// Kind is domain, tasklist, type or group.
	Kind, Name       string
	By, Why          string
	SinceMS, UntilMS int64
}

// Limit is a limit or a rate that covers the task.
type Limit struct {
	Ref string
	// Max is how many slots it has; 0 = it is a rate. Used counts those in use.
	Max, Used int
	// Closed: matching can book nothing of it now. Counting: since the attempts that use it are being counted.
	Closed, Counting bool
	// NextMS is when a closed rate is tried again, Unix ms.
	NextMS int64
	// Holder is the task that has had its slot for the longest; empty = not known.
	Holder string
	// Waiting counts the tasks that wait for it.
	Waiting int64
}

// Workers is what matching knows of the workers of the task's tasklist.
type Workers struct {
	// Silent are the shards of the tasklist that did not answer.
	Silent []int
	// Polled counts the workers that polled the tasklist within 5 minutes, Takers those of them that accept the type. Free: one of these waits for a task.
	Polled, Takers int64
	Free           bool
	// Last is the one that polled last, of the takers if there are some, AgoMS how long ago that was.
	Last  string
	AgoMS int64
	// KnownMS is for how long matching has watched.
	KnownMS int64
	// Waiting counts the tasks of the type that wait in the tasklist.
	Waiting int64
	// Drained are those that poll the tasklist and are drained.
	Drained []DrainedWorker
}

// DrainedWorker is a worker that gets no new attempts.
type DrainedWorker struct {
	ID, Worker, By, Why string
	SinceMS             int64
}

// Facts is all that is known.
type Facts struct {
	NowMS   int64
	Task    Task
	Queue   *Queue
	First   *First
	Pauses  []Pause
	Limits  []Limit
	Workers Workers
}

// Reason is one reason.
type Reason struct {
	Code  Code
	Text  string
	About bool
	// UntilMS and SinceMS are Unix ms; 0 = not known.
	UntilMS, SinceMS int64
	// By is who caused it, Ref what it is about, TaskID the first task of an order key.
	By, Ref, TaskID string
	Waiting         int64
}

// Reasons are all reasons why a task does not start now. None: a worker gets it next.
func Reasons(f *Facts) []Reason {
	switch t := &f.Task; t.State {
	case Ended:
		return []Reason{{Code: Finished, Text: fmt.Sprintf("The task has ended: it is %s.", t.Ended), SinceMS: t.SinceMS}}
	case Runs:
		return []Reason{{Code: Running, Text: sentence(fmt.Sprintf("%s runs the task%s.", worker(t.Worker), since(t.SinceMS))), By: t.Worker, SinceMS: t.SinceMS}}
	}
	all := slices.Concat(f.ofTask(), f.ofQueue(), f.ofOrderKey(), f.ofPauses(), f.ofLimits())
	return append(all, f.ofWorkers(len(all) == 0)...)
}
