// Package answer gathers the verdicts on the events of a message, and says which of them may be sent.
//
// Owns: which verdicts are known, which of them go together, and when one that no turn has decided may go. Never does:
// decide, or send. On failure: nothing can fail.
package answer

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Verdict is what became of one event.
type Verdict struct {
	taskstate.Verdict
	// Trace is the task's trace context, if the event was applied.
	Trace []byte
	// Fenced: the matching shard has a newer owner than who asked.
	Fenced bool
	// Grant is what the worker gets; its Task is nil if nothing was granted.
	Grant Grant
}

// Grant is an attempt as it was granted.
type Grant struct {
	// Task: only what never changes may be read of it later.
	Task       *taskstate.Task
	Token      ids.Token
	DeadlineAt int64
	// ReadyAt is since when the task could have been granted, Unix ms.
	ReadyAt int64
	// First: not the answer to a repetition.
	First bool
}

// Answer is the verdicts on the events of one message from First on. Mostly that is all of them. If some wait, for a
// task that is not read yet or for a search, what is known goes at the end of the turn, and the others as they become
// known: no one waits for another's search.
type Answer struct {
	ReplyTo   string
	RequestID uint64
	First     int
	Verdicts  []Verdict

	// left counts the verdicts that are not known.
	left int
	// at are the places of Verdicts in the message once a first part has been answered; before, Verdicts has one for
	// each event.
	at []int32
	// open says which verdicts are not known; nil = it has not been asked.
	open []bool
	// queued: it is in Answers.partly.
	queued bool
}

// New is the answer to a message of n events, of which no verdict is known.
func New(replyTo string, requestID uint64, n int) *Answer {
	return &Answer{ReplyTo: replyTo, RequestID: requestID, Verdicts: make([]Verdict, n), left: n}
}

// Known reports whether all verdicts are known.
func (a *Answer) Known() bool { return a.left == 0 }

// Verdict is the place for the verdict on the event at i of the message.
func (a *Answer) Verdict(i int) *Verdict {
	v, _ := a.verdict(i)
	return v
}

func (a *Answer) verdict(i int) (*Verdict, int) {
	if a.at != nil {
		i, _ = slices.BinarySearch(a.at, int32(i))
	}
	return &a.Verdicts[i], i
}

// Waits notes that the verdict on the event at i waits.
func (a *Answer) Waits(i int) {
	if a.at != nil {
		return // it waited before
	}
	if a.open == nil {
		a.open = make([]bool, len(a.Verdicts))
	}
	a.open[i] = true
}

func (a *Answer) set(i int, v taskstate.Verdict) {
	at, k := a.verdict(i)
	at.Verdict = v
	if a.open != nil {
		a.open[k] = false
	}
	a.left--
}

// split returns what is known, in runs of neighbours, and keeps what is not.
func (a *Answer) split() (known []*Answer) {
	place := func(k int) int {
		if a.at == nil {
			return k
		}
		return int(a.at[k])
	}
	var at []int32
	var rest []Verdict
	for k := 0; k < len(a.Verdicts); {
		if a.open[k] {
			at, rest = append(at, int32(place(k))), append(rest, a.Verdicts[k])
			k++
			continue
		}
		end := k + 1
		for end < len(a.Verdicts) && !a.open[end] && place(end) == place(k)+end-k {
			end++
		}
		known = append(known, &Answer{ReplyTo: a.ReplyTo, RequestID: a.RequestID, First: place(k), Verdicts: a.Verdicts[k:end:end]})
		k = end
	}
	a.at, a.Verdicts = at, rest
	a.open = slices.Repeat([]bool{true}, len(at))
	return known
}
