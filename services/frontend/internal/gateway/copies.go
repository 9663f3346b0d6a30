package gateway

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// A task remembers the last updates that were made of it, and no more. So each update says since when copies of it may be in the log: history makes none that
// may be a copy of what it has forgotten (decision 0043). One that is sent first says in addition until when it is alone. Both are times of the
// log, which may differ from ours by clocksApart.

// firstTryFor is how long a client that counts its tries waits for an answer to the first one, at least, before it sends the second.
const firstTryFor = 5 * time.Second

// anyTime is a time before all that is in the log, Unix ms.
const anyTime = 1

// copiesSince is a time before which no try of a request is in the log, Unix ms: the request's id has its time, by a clock that may be ahead.
func copiesSince(id, now time.Time) int64 {
	if id.Sub(now) > aheadMax {
		return anyTime
	}
	return id.Add(-aheadMax - clocksApart).UnixMilli()
}

// mayRepeat notes since when copies of the events of a request with an id may be in the log; any other request is new.
func mayRepeat(c Call, requestID string, entries []validate.Outcome) {
	id, err := ids.ParseRequestID(requestID)
	if err != nil {
		return // it has none
	}
	since := copiesSince(id.Time(), c.now())
	for i := range entries {
		entries[i].Event.Update.SinceMs = since
	}
}

// replacement is what changes a task with the key of open task k into that one. Until is how long no other frontend sends it at least, by the time of the
// log, Unix ms; 0 = that is not known.
func (pt *part) replacement(k int, holder ids.TaskID) (entry validate.Outcome, until int64) {
	entry = validate.Replacement(holder, pt.accepted.Records[k])
	entry.Event.Update.SinceMs = copiesSince(pt.at, pt.call.now())
	if !pt.repeats() && !pt.open[k].sent {
		until = pt.at.Add(firstTryFor - aheadMax - clocksApart).UnixMilli()
	}
	pt.open[k].sent = true
	return entry, until
}

// stamp dates the updates that are sent now.
func (o *outcomes) stamp(batch []*share) {
	for _, s := range batch {
		now := s.request.call.now()
		alone := now.Add(o.g.Config.VerdictTimeout - clocksApart).UnixMilli()
		for _, e := range s.events {
			switch u := e.Update; {
			case u == nil:
			case u.SinceMs == 0: // only we know its name
				u.SinceMs, u.SoleUntilMs = now.Add(-clocksApart).UnixMilli(), alone
			case s.request.soleUntil > 0:
				u.SoleUntilMs = min(s.request.soleUntil, alone)
			}
		}
	}
}

// copied notes that the events are sent once more.
func copied(events []*logv1.Event) {
	for _, e := range events {
		if e.Update != nil {
			e.Update.SoleUntilMs = 0
		}
	}
}

// untold answers s: history does not know what became of a replacement, nor will a repeat tell.
func (g *Gateway) untold(s *submission) {
	g.metrics.unknown.Add(1)
	s.refuse(&fault.Error{
		Code: fault.Unknown, Detail: map[string]string{fault.DetailFinal: "true"},
		Message: "a task was replaced many times, and what became of this request is not known any more: a repeat will not tell; look at the task, and submit it again as a new request",
	})
}
