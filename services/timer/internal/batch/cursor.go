package batch

import (
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// EncodeCursor encodes a firing cursor, of a log version.
func EncodeCursor(c due.Cursor, version uint32) ([]byte, error) {
	stored := encodeLine(&c.Line)
	stored.Epoch, stored.LogVersion, stored.EarlyFrom = c.Epoch, version, c.EarlyFrom
	for i := range c.Apart {
		if c.Apart[i].Domain == "" {
			break
		}
		line := encodeLine(&c.Apart[i].Line)
		line.Domain = c.Apart[i].Domain
		stored.Apart = append(stored.Apart, line)
	}
	data, err := stored.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode the firing cursor: %w", err)
	}
	return data, nil
}

func encodeLine(l *due.Line) *logv1.Cursor {
	stored := &logv1.Cursor{
		BaseDueMs: l.Base.DueMS, BaseSeq: l.Base.Seq, RoundDueMs: l.Round.DueMS, RoundSeq: l.Round.Seq,
		LastDueMs: l.Last.DueMS, LastSeq: l.Last.Seq, LastIndex: l.Last.Index,
	}
	for _, p := range l.Ahead {
		if p == (due.Part{}) {
			break
		}
		stored.Ahead = append(stored.Ahead, &logv1.CursorPart{Seq: p.Seq, LastDueMs: p.Last.DueMS, LastSeq: p.Last.Seq, LastIndex: p.Last.Index})
	}
	return stored
}

// DecodeCursor decodes a firing cursor. Misread, it would have tasks fired twice: one of
// a log version that is not known is a *logversion.UnknownError, and one of more parts, or
// of other domains apart, than there can be is refused too.
func DecodeCursor(data []byte) (due.Cursor, error) {
	var c logv1.Cursor
	if err := c.UnmarshalVT(data); err != nil {
		return due.Cursor{}, fmt.Errorf("decode the firing cursor: %w", err)
	}
	if err := logversion.Check(c.LogVersion); err != nil {
		return due.Cursor{}, fmt.Errorf("decode the firing cursor: %w", err)
	}
	if len(c.Apart) > due.ApartMost {
		return due.Cursor{}, fmt.Errorf("decode the firing cursor: %d domains are apart, want at most %d", len(c.Apart), due.ApartMost)
	}
	cursor := due.Cursor{Epoch: c.Epoch, EarlyFrom: c.EarlyFrom}
	if err := decodeLine(&c, &cursor.Line); err != nil {
		return due.Cursor{}, err
	}
	for i, a := range c.Apart {
		if a.Domain == "" {
			return due.Cursor{}, errors.New("decode the firing cursor: a domain that is apart has no name")
		}
		cursor.Apart[i].Domain = a.Domain
		if err := decodeLine(a, &cursor.Apart[i].Line); err != nil {
			return due.Cursor{}, err
		}
	}
	return cursor, nil
}

func decodeLine(c *logv1.Cursor, l *due.Line) error {
	if len(c.Ahead) > due.AheadMost {
		return fmt.Errorf("decode the firing cursor: it has %d parts, want at most %d", len(c.Ahead), due.AheadMost)
	}
	l.Base = due.Mark{DueMS: c.BaseDueMs, Seq: c.BaseSeq}
	l.Round = due.Mark{DueMS: c.RoundDueMs, Seq: c.RoundSeq}
	l.Last = due.Key{DueMS: c.LastDueMs, Seq: c.LastSeq, Index: c.LastIndex}
	for i, p := range c.Ahead {
		l.Ahead[i] = due.Part{Last: due.Key{DueMS: p.LastDueMs, Seq: p.LastSeq, Index: p.LastIndex}, Seq: p.Seq}
	}
	return nil
}
