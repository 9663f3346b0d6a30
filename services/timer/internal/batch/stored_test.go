package batch

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// v1 is what programs of the first log version have stored once.
const v1 = "../../../../contracts/logversion/testdata/v1/"

// TestI13StoredBatchesAreReadAsTheyWere: what a version has written into the timer store means
// the same forever, and so does the firing cursor. R21.
func TestI13StoredBatchesAreReadAsTheyWere(t *testing.T) {
	var b bytes.Buffer
	for _, m := range testkit.ReadMessages(t, v1+"timer.log") {
		_, index, err := Decode(m.Data)
		if err != nil {
			t.Fatalf("message %d: %v", m.Seq, err)
		}
		fmt.Fprintf(&b, "%d version=%d epoch=%d fence=%v\n", m.Seq, index.Version, index.Epoch, index.Fence)
		for _, tomb := range index.Tombstones {
			fmt.Fprintf(&b, "  void %s up to %d\n", tomb.ID, tomb.UpTo)
		}
		for _, task := range index.Tasks {
			g := task.Group
			fmt.Fprintf(&b, "  %s %s/%s/%s p%d due=%d parkings=%d retry=%v\n",
				task.ID, g.Domain, g.Tasklist, g.Type, g.Priority, task.DueMS, task.Parkings, g.Retry)
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
		fmt.Fprintf(&b, "cursor %d epoch=%d base=%+v round=%+v last=%+v ahead=%+v\n", m.Seq, c.Epoch, c.Base, c.Round, c.Last, c.Ahead)
	}
	testkit.Golden(t, "testdata/v1/timer.txt", b.Bytes())
}
