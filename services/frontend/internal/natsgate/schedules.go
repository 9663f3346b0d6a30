package natsgate

import (
	"context"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Schedules lists the names of schedules (schedules.Names).
type Schedules struct{ *Reader }

// Names reads the subjects of schedules, and none of the schedules.
func (s Schedules) Names(ctx context.Context, p int, domain string) ([]string, error) {
	all, _, err := natslog.Subjects(ctx, s.js, topology.HistoryStream(p), topology.ScheduleHomesOf(p, domain))
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the log does not answer: %v", err)
	}
	for i, subject := range all {
		all[i] = strings.TrimPrefix(subject, topology.ScheduleHome(p, domain, ""))
	}
	return all, nil
}
