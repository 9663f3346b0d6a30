package partition

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// answer gathers the verdicts on one event batch. Most are known when the batch is
// applied; a few must wait, for a task not read yet or a look into another store.
type answer struct {
	replyTo   string
	requestID uint64
	verdicts  []logv1.EventVerdict
	// grants are the attempts granted by this batch, taken back if nobody hears of it.
	grants []grant
	left   int
}

type grant struct {
	id    ids.TaskID
	fence ids.Token
}

func newAnswer(replyTo string, requestID uint64, n int) *answer {
	return &answer{replyTo: replyTo, requestID: requestID, verdicts: make([]logv1.EventVerdict, n), left: n}
}

// set notes the verdict on event i. A nil answer belongs to nobody.
func (a *answer) set(i int, v taskstate.Verdict) {
	if a == nil {
		return
	}
	out := &a.verdicts[i]
	out.Code, out.Message = string(v.Code), v.Message
	out.CancelRequested, out.LeaseUntilMs = v.CancelRequested, v.LeaseUntil
	a.left--
}

// verdictBytesMax bounds one verdict message; more of a batch go into further ones.
const verdictBytesMax = 600 << 10

// messages encodes the verdicts, cut so that each message fits.
func (a *answer) messages() [][]byte {
	var out [][]byte
	m := logv1.VerdictBatch{RequestId: a.requestID}
	size := 0
	flush := func(next int) {
		b, err := m.MarshalVT()
		if err != nil {
			panic("partition: " + err.Error()) // every field is of our making
		}
		out = append(out, b)
		m.Verdicts, m.First, size = nil, uint32(next), 0
	}
	for i := range a.verdicts {
		v := &a.verdicts[i]
		n := len(v.Task) + len(v.Message) + 64
		if size > 0 && size+n > verdictBytesMax {
			flush(i)
		}
		if m.Verdicts == nil {
			m.Verdicts = make([]*logv1.EventVerdict, 0, len(a.verdicts)-i)
		}
		m.Verdicts = append(m.Verdicts, v)
		size += n
	}
	flush(len(a.verdicts))
	return out
}

func notFound() taskstate.Verdict {
	return taskstate.Verdict{Code: fault.NotFound, Message: "no such task, or finished long ago"}
}
