package api

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
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
)

// readVerdicts decodes a batch of verdicts, as far as the core wants them. Tasks and
// traces alias data: they are most of a message, and are copied once more, into the
// answer, anyway.
func readVerdicts(data []byte) (match.Verdicts, error) {
	count := 0
	err := fields(data, func(n protowire.Number, _ uint64, _ []byte) error {
		if n == batchVerdicts {
			count++
		}
		return nil
	})
	if err != nil {
		return match.Verdicts{}, err
	}
	v := match.Verdicts{All: make([]match.Verdict, 0, count)} // one piece of memory for all
	err = fields(data, func(n protowire.Number, value uint64, bytes []byte) error {
		switch n {
		case batchRequestID:
			v.Batch = value
		case batchFirst:
			v.First = int(uint32(value))
		case batchVerdicts:
			v.All = append(v.All, match.Verdict{})
			return readVerdict(&v.All[len(v.All)-1], bytes)
		}
		return nil
	})
	return v, err
}

func readVerdict(v *match.Verdict, data []byte) error {
	return fields(data, func(n protowire.Number, value uint64, bytes []byte) error {
		switch n {
		case verdictCode:
			v.Refused = string(bytes)
		case verdictTask:
			v.Task = bytes
		case verdictTrace:
			v.Trace = bytes
		case verdictDeadline:
			v.DeadlineMS = int64(value)
		case verdictFenced:
			v.Fenced = value != 0
		}
		return nil
	})
}

// fields calls each for every field of a message: value for numbers, bytes for the
// rest.
func fields(data []byte, each func(n protowire.Number, value uint64, bytes []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		var value uint64
		var bytes []byte
		switch kind {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			bytes, n = protowire.ConsumeBytes(data)
		default: // no field that is read is of another kind
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if err := each(number, value, bytes); err != nil {
			return err
		}
	}
	return nil
}
