package batch

import (
	"errors"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestACursorIsReadAsItWasWritten(t *testing.T) {
	c := due.Cursor{
		Epoch: 1, Base: due.Mark{DueMS: 2, Seq: 3}, Round: due.Mark{DueMS: 4, Seq: 5}, Last: due.Key{DueMS: 6, Seq: 7, Index: 8},
	}
	for parts := range due.AheadMost + 1 {
		if parts > 0 {
			c.Ahead[parts-1] = due.Part{Last: due.Key{DueMS: int64(10 * parts), Seq: 9, Index: 1}, Seq: 10}
		}
		data, err := EncodeCursor(c, 1)
		testkit.NoError(t, err)
		if got, err := DecodeCursor(data); err != nil || got != c {
			t.Errorf("%+v: %v, want %+v", got, err, c)
		}
	}
}

// R21, R23: a cursor of a newer version is refused.
func TestI13_ACursorOfAnUnknownVersionIsRefused(t *testing.T) {
	for version, known := range map[uint32]bool{1: true, logversion.Newest(): true, logversion.Newest() + 1: false} {
		data := testkit.Encoded(t, &logv1.Cursor{Epoch: 7, BaseDueMs: 8, BaseSeq: 9, LogVersion: version})
		got, err := DecodeCursor(data)
		var unknown *logversion.UnknownError
		if known && (err != nil || got != due.Cursor{Epoch: 7, Base: due.Mark{DueMS: 8, Seq: 9}}) || !known && !errors.As(err, &unknown) {
			t.Errorf("version %d: %+v, %v", version, got, err)
		}
	}
}

// TestACursorCarriesTheVersionItIsWrittenWith, with parts as without.
func TestACursorCarriesTheVersionItIsWrittenWith(t *testing.T) {
	parts := due.Cursor{Ahead: [due.AheadMost]due.Part{{Seq: 1}}}
	for _, c := range []due.Cursor{{}, parts} {
		for _, version := range []uint32{1, 2} {
			data, err := EncodeCursor(c, version)
			testkit.NoError(t, err)
			var stored logv1.Cursor
			if err := stored.UnmarshalVT(data); err != nil || stored.LogVersion != version {
				t.Errorf("version %d is written as %d: %v", version, stored.LogVersion, err)
			}
		}
	}
}

func TestACursorOfTooManyPartsIsRefused(t *testing.T) {
	data := testkit.Encoded(t, &logv1.Cursor{Ahead: []*logv1.CursorPart{{Seq: 1}, {Seq: 2}, {Seq: 3}, {Seq: 4}, {Seq: 5}}})
	if c, err := DecodeCursor(data); err == nil {
		t.Errorf("%+v", c)
	}
}
