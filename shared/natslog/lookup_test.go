package natslog_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestLookupWithoutAnswer: a caller that would wait forever is informed that no answer
// came. A subscriber that keeps silent stands for a stream without a leader. Without
// that, a history owner archived nothing any more once its stream had lost its leader.
func TestLookupWithoutAnswer(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for answers that do not come")
	_, answering := logServer(t, nil)
	nc := answering.Conn()
	_, err := nc.Subscribe("silent.>", func(*nats.Msg) {})
	must(t, err)
	js, err := jetstream.NewWithAPIPrefix(nc, "silent")
	must(t, err)
	d, err := natslog.NewDirect(js)
	must(t, err)
	defer d.Close()
	ctx := t.Context() // without a deadline
	var lookups sync.WaitGroup
	for what, do := range map[string]func() error{
		"last of a subject": func() error { return testkit.Err(natslog.LastForSubject(ctx, js, stream, "log.a")) },
		"direct get":        func() error { return testkit.Err(d.Get(ctx, stream, []natslog.Query{{Seq: 1}})) },
	} {
		lookups.Go(func() {
			if err := do(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want that the deadline is exceeded", what, err)
			}
		})
	}
	lookups.Wait()
}

// TestSubjectsAreOfAStreamAsItWas: the last sequence says how new the list is.
func TestSubjectsAreOfAStreamAsItWas(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	for want, subject := range []string{"", "log.a", "log.b", "log.a"} {
		if subject != "" {
			must(t, testkit.Err(js.Publish(t.Context(), subject, nil)))
		}
		_, last, err := natslog.Subjects(t.Context(), js, stream, "log.a")
		must(t, err)
		testkit.Equal(t, "last sequence", last, uint64(want))
	}
	all, _, err := natslog.Subjects(t.Context(), js, stream, "log.a")
	must(t, err)
	testkit.Equal(t, "subjects", all, []string{"log.a"})
}
