package batch

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// v1 is what a cluster of version 1 has stored once.
const v1 = "../../../../contracts/logversion/testdata/v1/"

// TestI13StoredBatchesAreReadAsTheyWere: what a version has written into the timer store means
// the same forever, and so does the firing cursor. R21.
func TestI13StoredBatchesAreReadAsTheyWere(t *testing.T) {
	var b bytes.Buffer
	for _, m := range testkit.ReadMessages(t, v1+"timer.log") {
		body, index, err := Decode(m.Data)
		if err != nil || index.Malformed != nil {
			t.Fatalf("message %d: %v %v", m.Seq, err, index.Malformed)
		}
		fmt.Fprintf(&b, "%d version=%d epoch=%d fence=%v\n", m.Seq, index.Version, index.Epoch, index.Fence)
		for _, early := range index.Early {
			fmt.Fprintf(&b, "  early %s parkings=%d at=%d/%d bytes=%d of=%s/%s\n", early.ID, early.Generation, early.Place.Seq, early.Place.Index, early.Bytes, index.Domain, index.Tasklist)
		}
		var records [][]byte
		for i, task := range index.Tasks {
			g := task.Group
			fmt.Fprintf(&b, "  %s %s/%s/%s p%d due=%d parkings=%d retry=%v\n",
				task.ID, g.Domain, g.Tasklist, g.Type, g.Priority, task.DueMS, task.Parkings, g.Retry)
			records = append(records, body.Record(uint32(i)))
		}
		again := Join(records, index.Version)
		if len(index.Early) > 0 {
			again = Early(due.EarlyMessage{Domain: index.Domain, Tasklist: index.Tasklist, All: index.Early}, index.Version)
		}
		if !index.Fence && !bytes.HasPrefix(m.Data, again) {
			t.Errorf("message %d is written differently", m.Seq)
		}
	}
	for _, m := range testkit.ReadMessages(t, v1+"history.log") {
		if m.Subject != topology.Fired(0) {
			continue
		}
		c, err := DecodeCursor(m.Data)
		if err != nil {
			t.Fatalf("cursor %d: %v", m.Seq, err)
		}
		if again, err := EncodeCursor(c, 1); err != nil || !bytes.Equal(again, m.Data) {
			t.Errorf("cursor %d is written differently: %v", m.Seq, err)
		}
		fmt.Fprintf(&b, "cursor %d epoch=%d early_from=%d base=%+v round=%+v last=%+v ahead=%+v\n", m.Seq, c.Epoch, c.EarlyFrom, c.Base, c.Round, c.Last, c.Ahead)
	}
	testkit.Golden(t, "testdata/timer.txt", b.Bytes())
}
