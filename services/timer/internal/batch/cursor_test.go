package batch

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

func TestACursorIsReadAsItWasWritten(t *testing.T) {
	c := due.Cursor{
		Epoch: 1, Base: due.Mark{DueMS: 2, Seq: 3}, Round: due.Mark{DueMS: 4, Seq: 5}, Last: due.Key{DueMS: 6, Seq: 7, Index: 8},
	}
	for parts := range due.AheadMost + 1 {
		if parts > 0 {
			c.Ahead[parts-1] = due.Part{Last: due.Key{DueMS: int64(10 * parts), Seq: 9, Index: 1}, Seq: 10}
		}
		data, err := EncodeCursor(c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeCursor(data); err != nil || got != c {
			t.Errorf("%+v: %v, want %+v", got, err, c)
		}
	}
}

// R23: cursors from before there were parts, and before there were formats, are read.
func TestR23_AnOldCursorIsReadAndANewerOneRefused(t *testing.T) {
	for format, known := range map[uint32]bool{0: true, 1: true, 2: true, 3: false} {
		data, err := (&logv1.Cursor{Epoch: 7, BaseDueMs: 8, BaseSeq: 9, LogVersion: format}).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeCursor(data)
		if known && (err != nil || got != due.Cursor{Epoch: 7, Base: due.Mark{DueMS: 8, Seq: 9}}) || !known && err == nil {
			t.Errorf("format %d: %+v, %v", format, got, err)
		}
	}
}
