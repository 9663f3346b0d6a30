package scenario_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// poison is records that are well formed and that no frontend would have written.
func poison(domain string) (all []*logv1.Record) {
	next := uint64(0)
	add := func(change func(r *logv1.Record)) {
		next++
		id := ids.NewTaskID(time.Now(), 0, next)
		r := &logv1.Record{Id: id[:], Domain: domain, Tasklist: "odd", Type: "x", Priority: 3, Policy: &logv1.Policy{StartToCloseMs: 1000}}
		change(r)
		all = append(all, r)
	}
	for _, name := range []string{"", "a b", "a.b", ">", "a\r\nb", "\xff"} {
		add(func(r *logv1.Record) { r.Domain = name })
		add(func(r *logv1.Record) { r.Tasklist = name })
	}
	for _, priority := range []int32{-1, 0, 6, 300} {
		add(func(r *logv1.Record) { r.Priority = priority })
	}
	add(func(r *logv1.Record) { r.Id = nil })
	return all
}

// TestR19_PoisonInTheStoresStopsNothing: what somebody wrote straight into the log and into the
// timer store goes to the quarantine, once, and all others go on, after a restart too.
func TestR19_PoisonInTheStoresStopsNothing(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "restarts a system of its own")
	cfg := stack.Config{DataDir: t.TempDir(), Partitioning: topology.Partitioning{History: 1, Matching: 1}}
	first := own(t, cfg)
	w := enter(t, first)
	js := w.inside()
	written := 0
	put := func(subject string, data []byte) {
		t.Helper()
		if _, err := js.Publish(w.soon(), subject, data); err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		written++
	}
	put(topology.Event(0), []byte("no events"))
	put(topology.Timer(0, 5), []byte("no tasks"))
	put(topology.Submit(0, 3, w.domain, "odd"), bytes.Repeat([]byte{0xff}, 1<<20-4096)) // as large as a message may be
	for i, r := range poison(w.domain) {
		r.DueAtMs = time.Now().UnixMilli() + int64(i)
		data, err := (&logv1.Batch{Tasks: []*logv1.Record{r}}).MarshalVT()
		testkit.NoError(t, err)
		put(topology.Submit(0, 3, w.domain, "odd"), data)
		if r.Priority == 3 { // another one the timer files under the default
			put(topology.Timer(0, topology.TimerBucket(r.DueAtMs)), data)
		}
	}
	setApart := func(js jetstream.JetStream) error {
		n := 0
		err := quarantine.List(w.soon(), js, quarantine.Filter{Partition: -1}, func(quarantine.Item) error { n++; return nil })
		if err == nil && n != written {
			err = fmt.Errorf("%d of %d are in quarantine", n, written)
		}
		return err
	}
	w.othersGoOn() // the owner's next turn meets what is there: it takes over again, and reads it
	w.eventually(func() error { return setApart(js) })
	w.othersGoOn()
	testkit.NoError(t, closeStack(first))
	again := join(t, own(t, cfg), w.domain)
	again.othersGoOn()
	testkit.Check(t, setApart(again.inside()))
}

// othersGoOn runs a task that is due at once and one that waits.
func (w *world) othersGoOn() {
	w.t.Helper()
	for _, delay := range []int64{0, 500} {
		id := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: delay})
		p := w.takeOne()
		equal(w.t, "what came", p.TaskId, id)
		equal(w.t, "its completion", w.complete(p), "OK")
		equal(w.t, "its end", stateOf(w.ended(id)), "completed")
	}
}
