package api

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// readHints decodes a message of the hint stream. Triggers and bookings alias data.
func readHints(data []byte) (match.Hints, error) {
	m := new(logv1.Hints)
	if err := m.UnmarshalVT(data); err != nil {
		return match.Hints{}, err
	}
	h := match.Hints{
		Releases: make([]match.Release, 0, len(m.Releases)),
		Triggers: make([]arrival.Triggers, 0, len(m.Triggers)),
	}
	for _, r := range m.Releases {
		h.Releases = append(h.Releases, match.Release{Domain: r.Domain, Type: r.Type, Path: as[table.Ref](r.Limits), Bookings: r.Bookings})
	}
	for _, g := range m.Triggers {
		groups, ok := ids.Groups(g.Groups, g.GroupAt, len(g.Triggers)/ids.TriggerBytes)
		if !ok { // the triggers count all the same
			groups = nil
		}
		h.Triggers = append(h.Triggers, arrival.Triggers{
			Tasklist: table.Tasklist{Domain: g.Domain, Name: g.Tasklist, Partition: int(g.TasklistPartition)},
			Column:   table.Column{Priority: int(g.Priority), Type: g.Type},
			ReadyAt:  g.ReadyAtUs,
			Cost:     int(g.Cost),
			Packed:   g.Triggers,
			Groups:   groups,
		})
	}
	return h, nil
}
