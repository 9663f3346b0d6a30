package natslog

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI1_AMessageThatIsLostOnTheWayIsNoticed: the consumer's numbers have a gap, though the sequences of a reader with a filter may have one. So the reader
// begins again behind what it has handed out.
func TestI1_AMessageThatIsLostOnTheWayIsNoticed(t *testing.T) {
	c := &cursor{in: make(chan *nats.Msg, 3), silence: time.NewTimer(time.Hour), open: true, msgsLeft: 10, bytesLeft: 1 << 20, want: 1}
	for i, seq := range []int{4, 9, 17} {
		if number := i + 1; number != 2 { // the second one is lost
			c.in <- &nats.Msg{Subject: "s", Data: []byte("x"), Sub: new(nats.Subscription), Reply: fmt.Sprintf("$JS.ACK.S.C.1.%d.%d.1700000000000000000.0", seq, number)}
		}
	}
	r, err := c.receive(t.Context())
	testkit.NoError(t, err)
	testkit.Equal(t, "the first one", r.Seq, 4)
	if r, err = c.receive(t.Context()); !errors.Is(err, errBroken) || c.want != 5 {
		t.Errorf("then %d, %v; wanted next is %d", r.Seq, err, c.want)
	}
}
