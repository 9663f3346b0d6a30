package api

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// readVerdicts decodes a batch of verdicts, as far as the core wants them. Tasks and traces alias data: they are
// most of a message, and are copied once more, into the answer, anyway.
func readVerdicts(data []byte) (match.Verdicts, error) {
	m := new(logv1.VerdictBatch)
	if err := m.UnmarshalVTUnsafe(data); err != nil {
		return match.Verdicts{}, err
	}
	v := match.Verdicts{Batch: m.RequestId, First: int(m.First), All: make([]match.Verdict, len(m.Verdicts))}
	for i, one := range m.Verdicts {
		v.All[i] = match.Verdict{
			Refused: one.Code, Fenced: one.Fenced, Task: one.Task, Trace: one.Trace, DeadlineMS: one.DeadlineMs,
		}
	}
	return v, nil
}

// readHints decodes a message of the hint stream. Nothing aliases data: the core keeps names for long.
func readHints(data []byte) (match.Hints, error) {
	m := new(logv1.Hints)
	if err := m.UnmarshalVT(data); err != nil {
		return match.Hints{}, err
	}
	h := match.Hints{
		Releases: make([]match.Release, 0, len(m.Releases)),
		Triggers: make([]match.Triggers, 0, len(m.Triggers)),
	}
	for _, r := range m.Releases {
		h.Releases = append(h.Releases, match.Release{Domain: r.Domain, Type: r.Type, Path: as[table.Ref](r.Limits), Bookings: r.Bookings})
	}
	for _, g := range m.Triggers {
		groups, ok := ids.Groups(g.Groups, g.GroupAt, len(g.Triggers)/ids.TriggerBytes)
		if !ok { // the triggers count all the same
			groups = nil
		}
		h.Triggers = append(h.Triggers, match.Triggers{
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
