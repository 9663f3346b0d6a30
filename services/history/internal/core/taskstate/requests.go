package taskstate

import (
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// Requests are the last ones that were decided in one way. A copy of an update that comes later is known by them, or is known to be none of those
// that were forgotten, or is not decided at all.
type Requests struct {
	// Last are the latest first. It is not changed any more: copies of a task share it.
	Last []Request
	// ForgottenAt is when the log took the newest of those that are not kept any more, Unix ms; 0 = none was forgotten, ForgottenAnyTime = some
	// may have been.
	ForgottenAt int64
}

// Request is one that was decided.
type Request struct {
	// Name is never 0.
	Name uint64
	// At is when the log took its event, Unix ms; 0 = an owner decided it that did not note the time.
	At int64
}

// ForgottenAnyTime stands for a time that an owner did not note: it is before the next request that is decided.
const ForgottenAnyTime = math.MaxInt64

const (
	// requestsKept is how many requests are recognised, when they are repeated, by an event that does not say since when copies of it may be
	// in the log: others may have come between.
	requestsKept = 4
	// requestsMost is how many are recognised otherwise.
	requestsMost = 64
)

// index is the place of what an event asks for among the last ones; -1 = it is not there.
func (r *Requests) index(u *Update) int {
	last := r.Last
	if u.Since == 0 {
		last = last[:min(len(last), requestsKept)]
	}
	if u.Request == 0 {
		return -1
	}
	return slices.IndexFunc(last, func(one Request) bool { return one.Name == u.Request })
}

// with is r and one more, whose event the log took at a time.
func (r Requests) with(name uint64, at int64) Requests {
	stay := min(len(r.Last), requestsMost-1)
	last := make([]Request, 0, stay+1)
	last = append(append(last, Request{name, at}), r.Last[:stay]...)
	for i := range last {
		if last[i].At == 0 {
			last[i].At = at // no later than this
		}
	}
	if r.ForgottenAt == ForgottenAnyTime {
		r.ForgottenAt = at
	}
	for _, one := range r.Last[stay:] {
		r.ForgottenAt = max(r.ForgottenAt, one.At)
	}
	r.Last = last
	return r
}

// mayHave tells whether an event, of which r does not know the request, may be one of those that were forgotten, or a copy of one.
func (r *Requests) mayHave(e *Event, sole bool) bool {
	u := e.Update
	return u.Since != 0 && r.ForgottenAt >= u.Since && !(sole && e.At < u.SoleUntil)
}

// untold is the verdict on an event that may be a copy of one that was decided, and is not known any more. It changes nothing.
func untold(revision uint64) Verdict {
	return Verdict{
		Code: fault.Unknown, Final: true, Revision: revision,
		Message: "it may have been made before: the task has had too many other updates since; look at the task, and ask again with a new request",
	}
}
