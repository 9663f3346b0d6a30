package batch

import (
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// Formats of the firing cursor. One with parts ahead is not for those who know
// only the first.
const (
	cursorFormatFirst = 1
	cursorFormatAhead = 2
)

// EncodeCursor encodes a firing cursor.
func EncodeCursor(c due.Cursor) ([]byte, error) {
	stored := &logv1.Cursor{
		Epoch: c.Epoch, BaseDueMs: c.Base.DueMS, BaseSeq: c.Base.Seq, RoundDueMs: c.Round.DueMS, RoundSeq: c.Round.Seq,
		LastDueMs: c.Last.DueMS, LastSeq: c.Last.Seq, LastIndex: c.Last.Index, LogVersion: cursorFormatFirst,
	}
	for _, p := range c.Ahead {
		if p == (due.Part{}) {
			break
		}
		stored.LogVersion = cursorFormatAhead
		stored.Ahead = append(stored.Ahead, &logv1.CursorPart{Seq: p.Seq, LastDueMs: p.Last.DueMS, LastSeq: p.Last.Seq, LastIndex: p.Last.Index})
	}
	data, err := stored.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode the firing cursor: %w", err)
	}
	return data, nil
}

// DecodeCursor decodes a firing cursor. It refuses a format that it does not know:
// misread, it would have tasks fired twice.
func DecodeCursor(data []byte) (due.Cursor, error) {
	var c logv1.Cursor
	if err := c.UnmarshalVT(data); err != nil {
		return due.Cursor{}, fmt.Errorf("decode the firing cursor: %w", err)
	}
	if c.LogVersion > cursorFormatAhead || len(c.Ahead) > due.AheadMost {
		return due.Cursor{}, fmt.Errorf("the firing cursor has format %d and %d parts, and this program knows format %d and %d parts",
			c.LogVersion, len(c.Ahead), cursorFormatAhead, due.AheadMost)
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
