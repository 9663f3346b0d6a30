package grab

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Poll is a poll of a tasklist L, with the attempts that it was granted.
type Poll[L any] = pairing.Poll[L, Grant]

// Origin is where the triggers of one chunk come from.
type Origin[L any] struct {
	List L
	// Chunk has no triggers, and so no step.
	table.Chunk
	// Path is what was booked for each; empty = nothing. It never changes, whatever becomes of the limits. Scarce: others may soon wait for one of these slots.
	Path   []table.Ref
	Scarce bool
	// Rates are those of which starts were taken for each.
	Rates []*limit.Limit
	At    time.Duration
	// Life is that of the domain then: if it has started over since, no trigger goes back.
	Life uint64
	// Limits has the limits of the tasklist.
	Limits *limit.List
}

// Request is a trigger on its way to a poll.
type Request[L any] struct {
	Trigger ids.Trigger
	Poll    *Poll[L]
	From    *Origin[L]
	// decided: history has answered. detached: the poll does not wait for it. full: it was refused since the answer of its poll is full.
	decided, detached, full bool
}

// Chunk is the trigger of a request as it was in the table.
func (r *Request[L]) Chunk() table.Chunk {
	c := r.From.Chunk
	c.Triggers = ids.AppendTrigger(nil, r.Trigger)
	return c
}

// Waits reports whether its poll waits for it.
func (r *Request[L]) Waits() bool { return !r.detached }

// End is what became of a request.
type End[L any] struct {
	Request[L]
	// Detach: its poll waits for it no more.
	Detach bool
	// Over: it is not under way any more.
	Over bool
	// Free: no attempt of it runs, so its slots and starts are free.
	Free bool
	// Again: its trigger is to be matched again. Aside: it is set aside until its partition answers.
	Again, Aside bool
	// Granted: history granted it; the attempt is Grant, and must be over at DeadlineMS, Unix ms.
	Granted    bool
	Grant      Grant
	DeadlineMS int64
}

// Grant is an attempt that history granted to a poll.
type Grant struct {
	// Task is the encoded yardv1.PolledTask.
	Task []byte
	// attempt names it, of counts the grants of its batch.
	attempt HandBack
	of      *receipt
}

// Received counts a grant as received.
func (g *Grant) Received() { g.of.unconfirmed-- }

// receipt counts the grants of a batch: unconfirmed are those that may not have reached their polls, granted all of them.
type receipt struct{ unconfirmed, granted int }

// StopRequest is a task that is to be rejected, or an attempt that is to make room.
type StopRequest struct {
	Stop
	Limit *limit.Limit
	// Back is where the trigger stood of one to be rejected, Life that of its domain then.
	Back table.Chunk
	Life uint64
	done bool
}

// Stopped is what history decided about one; Refused is empty if it was applied.
type Stopped struct {
	StopRequest
	Refused fault.Code
}

// WaitsOn reports whether a task that was to be rejected waits on.
func (st *Stopped) WaitsOn() bool { return !st.Displace && st.Refused != "" && passes(st.Refused) }

// TooYoung reports whether a task waits on that has not waited for as long as it seemed.
func (st *Stopped) TooYoung() bool { return st.WaitsOn() && st.Refused == fault.FailedPrecondition }

// passes reports whether a grab that was refused may be granted another time.
func passes(code fault.Code) bool { return code != fault.Stale && code != fault.NotFound }
