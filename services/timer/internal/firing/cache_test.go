package firing

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// I7: a message is kept for the records that are still to fire. If there is no room for all, the messages that were used last are kept.
func TestI7_AMessageIsKeptForWhatIsLeftOfIt(t *testing.T) {
	message := func() *batch.Message {
		m, err := batch.Split(batch.Join([][]byte{{1}, {2}, {3}}, 1))
		testkit.NoError(t, err)
		return m
	}
	c := newCache(2 * message().Bytes())
	c.put(1, message(), 3)
	c.put(2, message(), 1)
	c.put(3, message(), 0)
	for _, step := range []struct {
		seq     uint64
		records int
		kept    bool
	}{{1, 2, true}, {2, 1, true}, {2, 1, false}, {3, 1, false}, {1, 1, true}, {1, 1, false}} {
		if m := c.take(step.seq, step.records); (m != nil) != step.kept {
			t.Errorf("%+v: %v", step, m)
		}
	}
	for seq := range uint64(3) {
		c.put(seq, message(), 3)
	}
	testkit.Equal(t, "kept", []bool{c.take(0, 1) != nil, c.take(1, 1) != nil, c.take(2, 1) != nil}, []bool{false, true, true})
}
