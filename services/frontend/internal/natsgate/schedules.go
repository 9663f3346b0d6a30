package natsgate

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/schedules"
)

// Schedules reads schedules (schedules.Homes).
type Schedules struct{ *Reader }

// schedulePageBytes bounds a page: a schedule has its payload twice.
const schedulePageBytes = 2 << 20

// Page reads schedules in the order in which they were changed.
func (s Schedules) Page(ctx context.Context, p int, domain string, after uint64, limit int) (page []schedules.Kept, more bool, err error) {
	query := natslog.Query{Seq: after + 1, NextFor: topology.ScheduleHomesOf(p, domain), Batch: limit, BytesMax: schedulePageBytes}
	answers, err := s.direct.Get(ctx, topology.HistoryStream(p), []natslog.Query{query})
	if err != nil {
		return nil, false, fault.New(fault.Unavailable, "the log does not answer: %v", err)
	}
	for i := range answers[0].Records {
		m := &answers[0].Records[i]
		home, err := schedules.Decode(p, m)
		if err != nil {
			return nil, false, err
		}
		page = append(page, schedules.Kept{Seq: m.Seq, Home: home})
	}
	return page, answers[0].More, nil
}

// Count counts them without reading them.
func (s Schedules) Count(ctx context.Context, p int, domain string) (int, error) {
	answers, err := s.direct.Get(ctx, topology.HistoryStream(p), []natslog.Query{{Seq: 1, NextFor: topology.ScheduleHomesOf(p, domain), Batch: 1}})
	if err != nil {
		return 0, fault.New(fault.Unavailable, "the log does not answer: %v", err)
	}
	return len(answers[0].Records) + int(answers[0].Pending), nil
}
