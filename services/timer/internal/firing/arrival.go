package firing

import (
	"errors"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// arrival is one message of the store, read and decoded.
type arrival struct {
	index due.Message
	body  *batch.Message
	// firstDueMS is the earliest due time in it.
	firstDueMS int64
}

// decode never fails: a message that is no batch holds no task.
func (o *Owner) decode(m Stored) arrival {
	body, index, err := Decode(m)
	if err != nil {
		o.Logger.Error("a message of the timer store is malformed and is passed over", "sequence", m.Seq, "error", err)
	}
	a := arrival{body: body, index: index}
	for i := range index.Tasks {
		if i == 0 || index.Tasks[i].DueMS < a.firstDueMS {
			a.firstDueMS = index.Tasks[i].DueMS
		}
	}
	return a
}

// Decode is the index of a stored message, and the message with its records. What
// is malformed holds nothing.
func Decode(m Stored) (*batch.Message, due.Message, error) {
	body, index, err := batch.Decode(m.Data)
	if err == nil && index.Fence != m.Fence {
		err = errors.New("a fence that lies in a bucket, or no fence where only fences do")
		index = due.Message{}
	}
	index.Seq, index.AtMS, index.Bucket, index.Fence = m.Seq, m.AtMS, m.Bucket, m.Fence
	return body, index, err
}
