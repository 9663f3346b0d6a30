package batch

import (
	"errors"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestACursorIsReadAsItWasWritten(t *testing.T) {
	c := due.Cursor{
		Epoch: 1, EarlyFrom: 9, Line: due.Line{Base: due.Mark{DueMS: 2, Seq: 3}, Round: due.Mark{DueMS: 4, Seq: 5}, Last: due.Key{DueMS: 6, Seq: 7, Index: 8}},
	}
	for parts := range due.AheadMost + 1 {
		if parts > 0 {
			c.Ahead[parts-1] = due.Part{Last: due.Key{DueMS: int64(10 * parts), Seq: 9, Index: 1}, Seq: 10}
		}
		for apart := range due.ApartMost + 1 {
			if apart > 0 {
				c.Apart[apart-1] = due.Apart{Domain: fmt.Sprint("d", apart), Line: c.Line}
				c.Apart[apart-1].Last.Index = uint32(apart)
			}
			data, err := EncodeCursor(c, 1)
			testkit.NoError(t, err)
			if got, err := DecodeCursor(data); err != nil || got != c {
				t.Errorf("%+v: %v, want %+v", got, err, c)
			}
		}
		c.Apart = [due.ApartMost]due.Apart{}
	}
}

// R21, R23: a cursor of a newer version is refused.
func TestI13_ACursorOfAnUnknownVersionIsRefused(t *testing.T) {
	for version, known := range map[uint32]bool{1: true, logversion.Newest(): true, logversion.Newest() + 1: false} {
		data := testkit.Encoded(t, &logv1.Cursor{Epoch: 7, BaseDueMs: 8, BaseSeq: 9, LogVersion: version})
		got, err := DecodeCursor(data)
		var unknown *logversion.UnknownError
		if known && (err != nil || got != due.Cursor{Epoch: 7, Line: due.Line{Base: due.Mark{DueMS: 8, Seq: 9}}}) || !known && !errors.As(err, &unknown) {
			t.Errorf("version %d: %+v, %v", version, got, err)
		}
	}
}

// TestACursorCarriesTheVersionItIsWrittenWith, with parts as without.
func TestACursorCarriesTheVersionItIsWrittenWith(t *testing.T) {
	parts := due.Cursor{Line: due.Line{Ahead: [due.AheadMost]due.Part{{Seq: 1}}}}
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

func TestACursorOfTooMuchIsRefused(t *testing.T) {
	parts := []*logv1.CursorPart{{Seq: 1}, {Seq: 2}, {Seq: 3}, {Seq: 4}, {Seq: 5}}
	many := make([]*logv1.Cursor, due.ApartMost+1)
	for i := range many {
		many[i] = &logv1.Cursor{Domain: fmt.Sprint("d", i)}
	}
	for name, stored := range map[string]*logv1.Cursor{
		"parts": {Ahead: parts}, "parts of a domain": {Apart: []*logv1.Cursor{{Domain: "a", Ahead: parts}}},
		"domains": {Apart: many}, "a domain without a name": {Apart: []*logv1.Cursor{{BaseSeq: 1}}},
	} {
		if c, err := DecodeCursor(testkit.Encoded(t, stored)); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
