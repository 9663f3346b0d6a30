package replica

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Answer is the verdicts on the events of one message from First on. Mostly that is all of them. If
// some wait, for a task that is not read yet or for a search, what is known goes at the end of
// the turn, and the others as they become known: no one waits for another's search.
type Answer struct {
	ReplyTo   string
	RequestID uint64
	First     int
	Verdicts  []Verdict

	// left counts the verdicts that are not known.
	left int
	// at are the places of Verdicts in the message once a first part has been answered;
	// before, Verdicts has one for each event.
	at []int32
	// open says which verdicts are not known; nil = it has not been asked.
	open []bool
	// queued: it is in Replica.partly.
	queued bool
}

// verdict is the place for the verdict on the event at i of the message.
func (a *Answer) verdict(i int) (*Verdict, int) {
	if a.at != nil {
		i, _ = slices.BinarySearch(a.at, int32(i))
	}
	return &a.Verdicts[i], i
}

// waits notes that the verdict on the event at i waits.
func (a *Answer) waits(i int) {
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

// conclude gives an event its verdict.
func (r *Replica) conclude(h *held, v taskstate.Verdict, fx *Effects) {
	if h.ans == nil || h.promised {
		return
	}
	h.ans.set(h.i, v)
	switch {
	case h.ans.at != nil:
		r.answerPartly(h.ans)
	case h.ans.left == 0:
		fx.Answers = append(fx.Answers, h.ans)
	}
}

// answerPartly answers what is known at the end of the turn.
func (r *Replica) answerPartly(a *Answer) {
	if !a.queued {
		a.queued = true
		r.partly = append(r.partly, a)
	}
}

// answerKnown answers what has become known of the messages of which some verdicts wait.
func (r *Replica) answerKnown(fx *Effects) {
	for _, a := range r.partly {
		a.queued = false
		if a.left > 0 || a.at != nil { // else all of it has been answered at once
			a.split(fx)
		}
	}
	clear(r.partly)
	r.partly = r.partly[:0]
}

// split answers what is known, in runs of neighbours, and keeps what is not.
func (a *Answer) split(fx *Effects) {
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
		fx.Answers = append(fx.Answers, &Answer{
			ReplyTo: a.ReplyTo, RequestID: a.RequestID, First: place(k), Verdicts: a.Verdicts[k:end:end],
		})
		k = end
	}
	a.at, a.Verdicts = at, rest
	a.open = slices.Repeat([]bool{true}, len(at))
}
