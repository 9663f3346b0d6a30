package api

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/shared/protofield"
)

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
