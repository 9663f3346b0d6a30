package api

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
)

// Fields of VerdictBatch and EventVerdict, as in log.proto.
const (
	batchRequestID = 1
	batchVerdicts  = 2
	batchFirst     = 3

	verdictCode     = 1
	verdictMessage  = 2
	verdictTask     = 3
	verdictTrace    = 4
	verdictDeadline = 7
)

// readVerdicts decodes a batch of verdicts, as far as a shard wants them. Tasks and
// traces alias data: they are most of a message, and are copied once more, into the
// answer, anyway.
func readVerdicts(data []byte) (*logv1.VerdictBatch, error) {
	count := 0
	err := fields(data, func(n protowire.Number, _ uint64, _ []byte) error {
		if n == batchVerdicts {
			count++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v := new(logv1.VerdictBatch)
	all := make([]logv1.EventVerdict, 0, count) // one piece of memory for all
	err = fields(data, func(n protowire.Number, value uint64, bytes []byte) error {
		switch n {
		case batchRequestID:
			v.RequestId = value
		case batchFirst:
			v.First = uint32(value)
		case batchVerdicts:
			all = append(all, logv1.EventVerdict{})
			return readVerdict(&all[len(all)-1], bytes)
		}
		return nil
	})
	v.Verdicts = make([]*logv1.EventVerdict, len(all))
	for i := range all {
		v.Verdicts[i] = &all[i]
	}
	return v, err
}

func readVerdict(v *logv1.EventVerdict, data []byte) error {
	return fields(data, func(n protowire.Number, value uint64, bytes []byte) error {
		switch n {
		case verdictCode:
			v.Code = string(bytes)
		case verdictMessage:
			v.Message = string(bytes)
		case verdictTask:
			v.Task = bytes
		case verdictTrace:
			v.Trace = bytes
		case verdictDeadline:
			v.DeadlineMs = int64(value)
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
		default: // of a newer history
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
