package intake

import (
	"github.com/yardmaster-io/yardmaster/contracts/catalog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/caps"
)

// admit counts s, or refuses it: a tasklist of its due tasks, a group there, or an order key has as many as it may, or its domain is over its quota. Once s is counted it is not
// refused. Without a cap it costs a look at the settings.
func (in *Intake) admit(s *submission) error {
	if s.counted.by != nil {
		return nil
	}
	var of caps.Counts
	records := s.accepted.Records
	if s.ordered() {
		if err := in.queues.fullKey(s.call.Domain, records); err != nil {
			return err
		}
	}
	for from, to := 0, 0; from < len(records); from = to {
		tasklist := records[from].Tasklist
		for to = from; to < len(records) && records[to].Tasklist == tasklist; to++ {
		}
		settings := catalog.Tasklists.Of(in.Catalog, s.call.Domain, tasklist)
		most, each := int64(settings.GetMaxQueued()), int64(settings.GetMaxQueuedPerGroup())
		if most <= 0 && each <= 0 {
			continue
		}
		for i, r := range records[from:to] {
			if r.DueAtMs != 0 {
				continue
			}
			whole := caps.Queue{Domain: s.call.Domain, Tasklist: tasklist}
			if most > 0 {
				of.Add(whole, most, from+i)
			}
			if each > 0 && r.Group != "" {
				of.Add(caps.Queue{Domain: whole.Domain, Tasklist: tasklist, Group: r.Group}, each, from+i)
			}
		}
	}
	if len(of.All) == 0 {
		return s.meter()
	}
	in.queues.mu.Lock()
	full := in.queues.book.Admit(of.All)
	queued := int64(0)
	if full >= 0 {
		queued = in.queues.book.Queued(of.All[full].Of)
	}
	in.queues.mu.Unlock()
	if full >= 0 {
		return &queueFullError{error: of.All[full].Refusal(queued, of.Firsts[full], queueRetryAfter)}
	}
	s.counted = counted{by: in.queues, all: of.All}
	return s.meter() // refuse takes back what s holds
}

// meter counts s in its domain's quota, once, or refuses it.
func (s *submission) meter() error {
	if err := s.charge.Take(); err != nil {
		return &queueFullError{err, true}
	}
	return nil
}
