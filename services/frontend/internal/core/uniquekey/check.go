// Package uniquekey decides whether a task may have its unique key, from what the log says about the key.
//
// Owns: when a key is free, whose it is, and which questions find out (Claim). Never does: I/O, or reading a clock.
// On failure: nothing can fail.
//
// Nothing here has to be right at the moment of the write: the log takes a task only if the last message about its key is still the one that
// was read (decision 0040).
package uniquekey

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Head is the last message of the log about a key.
type Head struct {
	// Seq is where it lies; 0 = there is none.
	Seq  uint64
	Task ids.TaskID
	// FreeAt is when another task may have the key, Unix ms; 0 = Task has not ended.
	FreeAt int64
	// At is when the log stored it, Within how long after the time in its id the task is void; 0 = never.
	At     time.Time
	Within time.Duration
}

// Word is what a head says to a task that wants the key.
type Word uint8

// The words.
const (
	// Free: the task may have it, if the head is still the last one.
	Free Word = iota
	// Own: the task is the one that has it, or had it last. A try stored it; unless the log took that too late.
	Own
	// Taken: another task has it.
	Taken
	// Unsure: another task has it, for so long that it may have ended, or may never have been one: a try that the log took too late is void, but its
	// word on the key stands. Has tells.
	Unsure
)

// Holder is what is known of the task that an unsure head names.
type Holder struct {
	// Exists: it is somewhere.
	Exists bool
	// FinishedAt is when it ended, ForMS how long it keeps its key then; 0 = it has not ended.
	FinishedAt, ForMS int64
}

// Has tells whether the task of an unsure head has the key at an instant. Of one that has ended its owner says so; where the log took one
// more try of it after that had been forgotten, no one does.
func Has(h Holder, now time.Time) bool {
	return h.Exists && (h.FinishedAt == 0 || now.UnixMilli() <= h.FinishedAt+h.ForMS+unsureAfter.Milliseconds())
}

// Frees tells whether a task that has the key by its head has ended, and gives the key free at an instant. The log says so a moment later.
func Frees(h Holder, now time.Time) bool {
	return h.Exists && h.FinishedAt != 0 && now.UnixMilli() >= h.FinishedAt+h.ForMS
}

// late tells whether the task of a head may be void. Its submit was stored together with the head, a moment later.
func (h Head) late() bool {
	const moment = time.Second
	return h.Within > 0 && h.At.Sub(h.Task.Time()) > h.Within-moment
}

// unsureAfter is the age of a head from which it is looked into whether its task exists. Before, the question would cost more
// than an answer that is right after a while.
const unsureAfter = 2 * time.Minute

// Check is what head says to task at an instant.
func Check(head Head, task ids.TaskID, now time.Time) Word {
	switch {
	case head.Seq == 0:
		return Free
	case head.Task == task:
		return Own
	case head.FreeAt != 0 && head.FreeAt <= now.UnixMilli():
		return Free
	case head.FreeAt == 0 && (head.late() || now.Sub(head.At) > unsureAfter):
		return Unsure
	}
	return Taken
}
