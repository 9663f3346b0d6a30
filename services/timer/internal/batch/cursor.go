package batch

import (
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// EncodeCursor encodes a firing cursor, of a log version.
func EncodeCursor(c due.Cursor, version uint32) ([]byte, error) {
	stored := &logv1.Cursor{
		Epoch: c.Epoch, BaseDueMs: c.Base.DueMS, BaseSeq: c.Base.Seq, RoundDueMs: c.Round.DueMS, RoundSeq: c.Round.Seq,
		LastDueMs: c.Last.DueMS, LastSeq: c.Last.Seq, LastIndex: c.Last.Index, LogVersion: version,
	}
	for _, p := range c.Ahead {
		if p == (due.Part{}) {
			break
		}
		stored.Ahead = append(stored.Ahead, &logv1.CursorPart{Seq: p.Seq, LastDueMs: p.Last.DueMS, LastSeq: p.Last.Seq, LastIndex: p.Last.Index})
	}
	data, err := stored.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode the firing cursor: %w", err)
	}
	return data, nil
}

// DecodeCursor decodes a firing cursor. Misread, it would have tasks fired twice: one of
// a log version that is not known is a *logversion.UnknownError, and one of more parts
// than there can be is refused too.
func DecodeCursor(data []byte) (due.Cursor, error) {
	var c logv1.Cursor
	if err := c.UnmarshalVT(data); err != nil {
		return due.Cursor{}, fmt.Errorf("decode the firing cursor: %w", err)
	}
	if err := logversion.Check(c.LogVersion); err != nil {
		return due.Cursor{}, fmt.Errorf("decode the firing cursor: %w", err)
	}
	if len(c.Ahead) > due.AheadMost {
		return due.Cursor{}, fmt.Errorf("decode the firing cursor: it has %d parts, want at most %d", len(c.Ahead), due.AheadMost)
	}
	cursor := due.Cursor{
		Epoch: c.Epoch,
		Base:  due.Mark{DueMS: c.BaseDueMs, Seq: c.BaseSeq},
		Round: due.Mark{DueMS: c.RoundDueMs, Seq: c.RoundSeq},
		Last:  due.Key{DueMS: c.LastDueMs, Seq: c.LastSeq, Index: c.LastIndex},
	}
	for i, p := range c.Ahead {
		cursor.Ahead[i] = due.Part{Last: due.Key{DueMS: p.LastDueMs, Seq: p.LastSeq, Index: p.LastIndex}, Seq: p.Seq}
	}
	return cursor, nil
}
