package outcome

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// A task remembers the last update that was decided, and no other. So each update says since when copies of it may be in the log: history applies none that
// may have been decided before the last one (decision 0043). The first sending says in addition until when it is alone. Both are times of the
// log, which may differ from ours by tries.ClocksApart.

// Date says of the updates of a request with an id when copies of them may be in the log. It refuses a repeat that comes too early: the first try may be
// alone still.
func Date(c call.Call, req validate.Repeatable, updates []validate.Outcome) error {
	id, err := ids.ParseRequestID(req.GetRequestId())
	if err != nil {
		return nil // it has none
	}
	since, until, early := tries.Dates(id.Time(), c.ServerNow(), req.GetTries())
	if early > 0 {
		return fault.New(fault.Unavailable, "the first try may be on its way: a repeat comes no sooner than %v after the time in request_id", tries.FirstTryFor).After(early)
	}
	for i := range updates {
		u := updates[i].Event.Update
		u.SinceMs, u.SoleUntilMs = since, until
	}
	return nil
}

// stamp dates the updates that are sent now.
func (o *Outcomes) stamp(batch []*share) {
	for _, s := range batch {
		now := s.request.call.ServerNow()
		alone := now.Add(o.VerdictTimeout - tries.ClocksApart).UnixMilli()
		for _, e := range s.events {
			switch u := e.Update; {
			case u == nil:
			case u.SinceMs == 0: // only we know its name
				u.SinceMs, u.SoleUntilMs = now.Add(-tries.ClocksApart).UnixMilli(), alone
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
