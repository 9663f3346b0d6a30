package gateway

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// A task remembers the last update that was decided, and no other. So each update says since when copies of it may be in the log: history applies none that
// may have been decided before the last one (decision 0043). The first sending says in addition until when it is alone. Both are times of the
// log, which may differ from ours by clocksApart.

// firstTryFor is how old a request is at least when its second try is sent: a client that counts its tries waits that long for the answer to the first one.
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

// request is one that may come again.
type request interface {
	GetRequestId() string
	GetTries() int32
}

// date says of the updates of a request with an id when copies of them may be in the log. It refuses a repeat that comes too early: the first try may be
// alone still.
func date(c Call, req request, updates []validate.Outcome) error {
	id, err := ids.ParseRequestID(req.GetRequestId())
	if err != nil {
		return nil // it has none
	}
	since, until := copiesSince(id.Time(), c.now()), int64(0)
	early := firstTryFor - c.now().Sub(id.Time())
	switch {
	case since == anyTime: // its age is not known
	case req.GetTries() == 1:
		until = id.Time().Add(firstTryFor - clocksApart).UnixMilli()
	case req.GetTries() > 1 && early > 0:
		return fault.New(fault.Unavailable, "the first try may be on its way: a repeat comes no sooner than %v after the time in request_id", firstTryFor).After(early)
	}
	for i := range updates {
		u := updates[i].Event.Update
		u.SinceMs, u.SoleUntilMs = since, until
	}
	return nil
}

// replacement is what changes a task with the key of open task k into that one. The first one that a first try sends to the task is alone.
func (pt *part) replacement(k int, holder ids.TaskID) validate.Outcome {
	entry, open := validate.Replacement(holder, pt.accepted.Records[k]), &pt.open[k]
	u := entry.Event.Update
	u.SinceMs = copiesSince(pt.at, pt.call.now())
	if !pt.repeats() && !slices.Contains(open.sent, holder) {
		u.SoleUntilMs = pt.at.Add(firstTryFor - aheadMax - clocksApart).UnixMilli()
	}
	open.sent = append(open.sent, holder)
	return entry
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
			default:
				u.SoleUntilMs = min(u.SoleUntilMs, alone)
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
		Message: "another submit has replaced a task since, and the outcome of this one is unknown: do not repeat it; look at the task, and submit it again as a new request",
	})
}
