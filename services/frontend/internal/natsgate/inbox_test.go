package natsgate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// words is a listener that tells in words what it hears.
type words chan string

func (w words) TakeVerdicts(data []byte)            { w <- "verdicts " + string(data) }
func (w words) EventsRefused(id uint64, why string) { w <- fmt.Sprintf("events %d: %s", id, why) }
func (w words) PollBounced(id uint64)               { w <- fmt.Sprintf("poll %d", id) }
func (w words) TasksBounced(id uint64)              { w <- fmt.Sprintf("tasks %d", id) }
func (w words) TakeGivenUp(data []byte)             { w <- "given up " + string(data) }
func (w words) TakeAnswered(data []byte)            { w <- "answered " + string(data) }
func (w words) TakeLoad(data []byte)                { w <- "load " + string(data) }
func (w words) TakeSilent(data []byte)              { w <- "silent " + string(data) }
func (w words) TakeUse(data []byte)                 { w <- "use " + string(data) }
func (w words) TakeStored(data []byte)              { w <- "stored " + string(data) }
func (w words) TakeTasklistLoad(data []byte)        { w <- "tasklists " + string(data) }

// listening is an inbox that runs until the test ends.
func listening(t *testing.T) (*nats.Conn, *Inbox, words) {
	t.Helper()
	nc := natskit.Run(t).Connect(t)
	inbox, w := NewInbox(nc), make(words, 100)
	inbox.Listen(w, w, map[string]func([]byte){
		topology.HintLoad: w.TakeLoad, topology.HintTasklistLoad: w.TakeTasklistLoad, topology.HintSilent: w.TakeSilent,
		topology.HintUse: w.TakeUse, topology.HintStored: w.TakeStored, topology.HintGivenUp: w.TakeGivenUp,
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- inbox.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		testkit.Check(t, <-ended)
	})
	<-inbox.Ready()
	return nc, inbox, w
}

// replies has somebody take what is sent to a subject, and answer it. It returns how to wait until that was done once.
func replies(t *testing.T, nc *nats.Conn, subject string, answers ...*nats.Msg) (await func()) {
	t.Helper()
	done := make(chan error, 1)
	_, err := nc.Subscribe(subject, func(m *nats.Msg) {
		var all error
		for _, a := range answers {
			all = errors.Join(all, m.RespondMsg(&nats.Msg{Data: a.Data, Header: a.Header}))
		}
		done <- all
	})
	if err == nil {
		err = nc.Flush()
	}
	testkit.NoError(t, err)
	return func() {
		t.Helper()
		testkit.NoError(t, <-done)
	}
}

// hears waits for what is heard, in this order.
func (w words) hears(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case one := <-w:
			got = append(got, one)
		case <-time.After(30 * time.Second):
			t.Fatalf("heard %q, want %q", got, want)
		}
	}
	testkit.Equal(t, "heard", got, want)
}

// A poll counts as bounced where the server says that there was no subscriber, and not where somebody replies to it.
func TestOnlyAPollWithoutASubscriberBounces(t *testing.T) {
	nc, inbox, w := listening(t)
	awaitReplies := replies(t, nc, topology.MatchingPoll(0, 1), &nats.Msg{}, &nats.Msg{Data: []byte("refused"), Header: nats.Header{"Status": {"400"}}})
	testkit.NoError(t, inbox.PublishPoll(0, 1, 5, nil))
	// Words about what is no poll of ours.
	for _, token := range []string{"p.x", "p", "q.7"} {
		testkit.NoError(t, nc.PublishRequest("nobody", inbox.prefix+"."+token, nil))
	}
	awaitReplies()
	for epoch := range uint64(2) { // there is no subscriber, in either
		testkit.NoError(t, inbox.PublishPoll(0, 3+epoch, 8+epoch, nil))
	}
	w.hears(t, "poll 8", "poll 9")
}

// Events are refused if the partition has no owner; what an owner replies is not reported.
func TestOnlyEventsWithoutAnOwnerAreRefused(t *testing.T) {
	nc, inbox, w := listening(t)
	replies(t, nc, topology.EventRequests(0), &nats.Msg{Data: []byte(`no JSON`)}, &nats.Msg{})
	testkit.NoError(t, inbox.PublishEvents(0, 5, []byte("x")))
	testkit.NoError(t, inbox.PublishEvents(1, 6, []byte("x")))
	w.hears(t, "events 6: no node serves this partition")
}
