package upgrade

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// writeTooEarly appends a batch of the next version to every log, as a program does that
// does not keep to what the cluster writes.
func (r *rollout) writeTooEarly(js jetstream.JetStream, partitions int) {
	r.t.Helper()
	events, err := (&logv1.Turn{LogVersion: nextVersion}).MarshalVT()
	testkit.NoError(r.t, err)
	for p := range partitions {
		testkit.NoError(r.t, testkit.Err(js.Publish(r.t.Context(), topology.Event(p), events)))
	}
}

// burst is how many tasks a request has: more than a frontend lets a partition be ahead of the emptiest one
// (distribution.StayTasks), so that the next request goes to another.
const burst = 130

// submit hands in tasks until each partition has some that are due at once and some that wait.
func (r *rollout) submit(partitions int) (all []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	tasks := make([]yard.Task, burst)
	for i := range tasks {
		tasks[i] = yard.Task{Type: "echo", Tasklist: tasklist, Payload: "kept"}
		if i%2 == 1 {
			tasks[i].Delay = 2 * time.Second
		}
	}
	for filled := map[int]bool{}; len(filled) < partitions; { // a request goes to one partition
		submitted, err := r.client.SubmitMany(ctx, tasks)
		testkit.NoError(r.t, err)
		for _, text := range submitted {
			id, err := ids.ParseTaskID(text)
			testkit.NoError(r.t, err)
			filled[id.Partition()] = true
		}
		all = append(all, submitted...)
	}
	return all
}

// completes waits until all of these tasks are completed.
func (r *rollout) completes(all []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	for _, id := range all {
		if _, err := r.client.Wait(ctx, id); err != nil {
			r.t.Fatalf("task %s: %v", id, err)
		}
	}
}

// stopped counts the partitions that a history process has given up, by its alarm.
func (r *rollout) stopped(i int) (n int) {
	r.t.Helper()
	page, err := r.Metrics(cluster.History, i)
	testkit.NoError(r.t, err)
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, signals.PartitionStopped.Prometheus()+"{") && strings.HasSuffix(line, " 1\n") {
			n++
		}
	}
	return n
}

// TestI13AnOldOwnerGivesUp: history of the old version meets a batch of the next one. It gives
// its partitions up, with an alarm, and serves none of them again; the new one takes them over,
// reads what the old one could not, and no task is lost. R21.
func TestI13AnOldOwnerGivesUp(t *testing.T) {
	t.Parallel()
	r := startOld(t)
	r.join()
	r.flows("side by side")
	js, partitions := r.jetStream()
	old, now := r.old[cluster.History], r.new[cluster.History]
	before := r.submit(partitions)
	r.writeTooEarly(js, partitions)
	behind := r.submit(partitions)
	r.completes(before)
	r.completes(behind)
	testkit.Eventually(t, within, func() error {
		log := r.Log(cluster.History, now)
		if held := strings.Count(log, "\"partition acquired\"") - strings.Count(log, "partition released"); held != partitions {
			return fmt.Errorf("the new one holds %d partitions of %d", held, partitions)
		}
		return nil
	})
	stopped := r.stopped(old)
	if stopped == 0 || r.stopped(now) > 0 {
		t.Errorf("the old one has stopped %d partitions, the new one %d", stopped, r.stopped(now))
	}
	log := r.Log(cluster.History, old)
	for _, text := range []string{"a partition was given up: this node no longer serves it", fmt.Sprintf("log version %d is not known to this program", nextVersion)} {
		if n := strings.Count(log, text); n < stopped {
			t.Errorf("the old one says %q %d times, %d partitions stopped:\n%s", text, n, stopped, log)
		}
	}
	if strings.Contains(log, "quarantine") {
		t.Errorf("the old one set something apart:\n%s", log)
	}
	r.flows("the new one serves all")
	if n := r.stopped(old); n < stopped {
		t.Errorf("the old one serves %d partitions again", stopped-n)
	}
	if n := r.written()[nextVersion]; n > partitions {
		t.Errorf("%d batches of the next version, %d were appended", n, partitions)
	}
}
