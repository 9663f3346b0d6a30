package intake

import (
	"github.com/yardmaster-io/yardmaster/contracts/catalog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/caps"
)

// count counts s, or learns why it is over a cap or a quota.
func (in *Intake) count(s *submission) {
	s.over = in.admit(s)
	s.CountedAs(s.over != nil)
}

// admit counts s, or refuses it: a tasklist of its due tasks, a group there, or an order key has as many as it may, or its domain is over its quota. Once s is counted it is not
// refused. Without a cap it costs a look at the settings.
func (in *Intake) admit(s *submission) error {
	if s.counted.by != nil {
		return nil
	}
	records := s.accepted.Records
	if s.ordered() {
		if err := in.queues.fullKey(s.call.Domain, records); err != nil {
			return err
		}
	}
	var of caps.Counts
	var most, each int64
	for i, r := range records {
		if i == 0 || r.Tasklist != records[i-1].Tasklist {
			settings := catalog.Tasklists.Of(in.Catalog, s.call.Domain, r.Tasklist)
			most, each = int64(settings.GetMaxQueued()), int64(settings.GetMaxQueuedPerGroup())
		}
		if r.DueAtMs != 0 {
			continue
		}
		if most > 0 {
			of.Add(caps.Queue{Domain: s.call.Domain, Tasklist: r.Tasklist}, most, i)
		}
		if each > 0 && r.Group != "" {
			of.Add(caps.Queue{Domain: s.call.Domain, Tasklist: r.Tasklist, Group: r.Group}, each, i)
		}
	}
	if len(of.All) == 0 {
		return s.charge.Take()
	}
	in.queues.mu.Lock()
	full := in.queues.book.Admit(of.All)
	queued := int64(0)
	if full >= 0 {
		queued = in.queues.book.Queued(of.All[full].Of)
	}
	in.queues.mu.Unlock()
	if full >= 0 {
		return of.All[full].Refusal(queued, of.Firsts[full], queueRetryAfter)
	}
	s.counted = counted{by: in.queues, all: of.All}
	return s.charge.Take() // refuse takes back what s holds
}
