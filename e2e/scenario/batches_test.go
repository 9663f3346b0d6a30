package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestOneMessagePerBatchOnEveryHop runs 10,000 tasks in hundreds, and counts what
// every hop stored. What is left to chance is how batches meet: a poll of a hundred
// may take from two partitions, which makes two messages of its grabs and two of its
// outcomes; an idle poll may have triggers sent again; and what gathers while a
// message is under way shares the next.
func TestOneMessagePerBatchOnEveryHop(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	eachKind(t, func(t *testing.T, kind stack.Tables) {
		const batch, batches = 100, 100
		services := stack.DefaultServices()
		services.Frontend.Gateway.VerdictTimeout = within / 2 // a slow machine's verdicts are not lost
		services.History.Partition.PurgeEvery, services.Timer.Firing.PurgeEvery = time.Hour, time.Hour
		w := enter(t, own(t, stack.Config{Tables: kind, Services: &services}))
		n := w.stack.Partitioning
		tasks := many(batch, &yardv1.NewTask{Type: "x", Payload: jsonPayload(strings.Repeat("1", 250))})
		for range batches {
			w.submit(tasks...)
		}
		// A poll that finds them all takes them as a whole, on a slow machine too.
		w.meter(signals.TriggersReceived, batch*batches)
		polls := int64(0) // that brought tasks
		for left := batch * batches; left > 0; polls++ {
			polled := w.some(batch)
			if got := w.complete(polled...); strings.Trim(got, "OK ") != "" {
				t.Fatalf("verdicts %s", got)
			}
			left -= len(polled)
		}
		w.meter(signals.TasksArchived, batch*batches)

		m := meters(t, w.stack)
		within := func(hop string, messages, most int64) {
			t.Helper()
			t.Logf("%s: %d messages", hop, messages)
			if messages > most {
				t.Errorf("%s: %d messages, at most %d are one per batch", hop, messages, most)
			}
		}
		within("submits", m[signals.SubmitMessages.Prometheus()], batches)
		within("hints", stored(w, n.Matching, topology.MatchingStream), 2*batches)
		within("polls", polls, 2*batches)
		within("grabs", m[signals.GrabMessages.Prometheus()], 2*batches)
		within("outcomes", m[signals.OutcomeMessages.Prometheus()], 2*batches)
		// A message of the archive is at most 32 KiB, and many are stored as one.
		within("archive", stored(w, n.History, topology.ArchiveStream), 4*batches)
		within("the log in all", w.logged(), batch*batches*5/100)
		equal(t, "sent again for want of a verdict", m[signals.OutcomeResends.Prometheus()], 0)
		equal(t, "tasks", m[signals.TasksAccepted.Prometheus()], batch*batches)
		equal(t, "submits measured", m[signals.SubmitDuration.Prometheus()+"_count"], batches)
		equal(t, "appends measured and submits stored", m[signals.AppendDuration.Prometheus()+"_count"] > m[signals.SubmitMessages.Prometheus()], true)
		if n := m[signals.TaskWait.Prometheus()+"_count"]; n < batch*batches || n > m[signals.AttemptsGranted.Prometheus()] {
			t.Errorf("%d waits were measured", n) // a grant that is repeated has been
		}
		equal(t, "grabs measured", m[signals.GrabDuration.Prometheus()+"_count"] > 0, true)
		equal(t, "calls of Redis measured", m[signals.RedisCallDuration.Prometheus()+"_count"] > 0, kind == stack.TablesRedis)
		// On a slow machine a poll is answered without a partition that is late, and an owner that is
		// replaced hands back what may not even be granted.
		if kept := m[signals.GrabsGranted.Prometheus()] - m[signals.AttemptsReturned.Prometheus()]; kept > batch*batches {
			t.Errorf("%d grants were kept, of %d tasks", kept, batch*batches)
		}
	})
}

// logged counts the messages of the logs that hold tasks or events. The others tell at most four times a
// second what polls have received, as long as it takes.
func (w *world) logged() (n int64) {
	w.t.Helper()
	js := w.inside()
	for p := range w.stack.Partitioning.History {
		err := natslog.ReadAll(w.soon(), js, natslog.ReadConfig{Stream: topology.HistoryStream(p)}, func(r natslog.Record) error {
			var b logv1.Turn
			if r.Subject == topology.Event(p) {
				if err := b.UnmarshalVT(r.Data); err != nil || len(b.Batches) == 0 {
					return err
				}
			}
			n++
			return nil
		})
		testkit.NoError(w.t, err)
	}
	return n
}
