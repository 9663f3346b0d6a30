package api

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/protofield"
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

// Fields of VerdictBatch and EventVerdict, as in log.proto.
const (
	batchRequestID = 1
	batchVerdicts  = 2
	batchFirst     = 3

	verdictCode     = 1
	verdictTask     = 3
	verdictTrace    = 4
	verdictDeadline = 7
	verdictFenced   = 8
	verdictReady    = 13
)

// readVerdicts decodes a batch of verdicts, as far as the core wants them. Tasks and
// traces alias data: they are most of a message, and are copied once more, into the
// answer, anyway.
func readVerdicts(data []byte) (grab.Verdicts, error) {
	count := 0
	err := protofield.Each(data, func(f protofield.Field) error {
		if f.Number == batchVerdicts {
			count++
		}
		return nil
	})
	if err != nil {
		return grab.Verdicts{}, err
	}
	v := grab.Verdicts{All: make([]grab.Verdict, 0, count)} // one piece of memory for all
	err = protofield.Each(data, func(f protofield.Field) error {
		switch f.Number {
		case batchRequestID:
			v.Batch = f.Varint
		case batchFirst:
			v.First = int(uint32(f.Varint))
		case batchVerdicts:
			v.All = append(v.All, grab.Verdict{})
			return readVerdict(&v.All[len(v.All)-1], f.Bytes)
		}
		return nil
	})
	return v, err
}

func readVerdict(v *grab.Verdict, data []byte) error {
	return protofield.Each(data, func(f protofield.Field) error {
		switch f.Number {
		case verdictCode:
			v.Refused = string(f.Bytes)
		case verdictTask:
			v.Task = f.Bytes
		case verdictTrace:
			v.Trace = f.Bytes
		case verdictDeadline:
			v.DeadlineMS = int64(f.Varint)
		case verdictReady:
			v.ReadyMS = int64(f.Varint)
		case verdictFenced:
			v.Fenced = f.Varint != 0
		}
		return nil
	})
}
