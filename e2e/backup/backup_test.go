package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// submits hands in tasks of a type.
func (d *dev) submits(n int, task yard.Task) []string {
	d.t.Helper()
	task.Tasklist = tasklist
	all, err := d.client.SubmitMany(d.t.Context(), slices.Repeat([]yard.Task{task}, n))
	testkit.NoError(d.t, err)
	return all
}

// works runs the tasks of a type until stop is called, which tells how that went.
func (d *dev) works(taskType string) (stop func() error) {
	w := yard.NewWorker(d.client, tasklist)
	w.HandleFunc(taskType, func(context.Context, *yard.Attempt) (yard.Payload, error) { return yard.Payload{}, nil })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// completed waits until all of these tasks are completed.
func (d *dev) completed(all []string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), within)
	defer cancel()
	for _, id := range all {
		if _, err := d.client.Wait(ctx, id); err != nil {
			d.t.Fatalf("task %s of %d: %v", id, len(all), err)
		}
	}
}

// known are tasks with their histories.
func (d *dev) known(all []string) map[string]*yard.TaskInfo {
	d.t.Helper()
	found := map[string]*yard.TaskInfo{}
	for _, id := range all {
		info, err := d.client.Get(d.t.Context(), id)
		if err != nil {
			d.t.Fatalf("task %s of %d: %v", id, len(all), err)
		}
		found[id] = info
	}
	return found
}

// TestACopyOfAStoppedSystem: stopped, copied and started as infra/docs/operations.md says, it has every task as it was, and
// goes on with it.
func TestACopyOfAStoppedSystem(t *testing.T) {
	long(t)
	binary, data := build(t), t.TempDir()
	d := start(t, binary, data)
	finished := d.submits(20, yard.Task{Type: "done"})
	stop := d.works("done")
	d.completed(finished)
	testkit.NoError(t, stop())
	ready := d.submits(100, yard.Task{Type: "ready", Payload: "kept"})
	waiting := d.submits(20, yard.Task{Type: "later", Delay: time.Hour})
	testkit.Eventually(t, within, func() error {
		for _, info := range d.known(waiting) {
			if info.State != yard.StateWaiting {
				return errors.New("a delayed task is not read yet")
			}
		}
		return nil
	})
	all := slices.Concat(finished, ready, waiting)
	before := d.known(all)
	// A snapshot that no owner deletes, since it is newer than its own.
	snapshot := topology.Snapshot(0, math.MaxUint64, 1, 0)
	testkit.NoError(t, testkit.Err(d.inside().Publish(t.Context(), snapshot, []byte("state"))))
	d.stop()

	d = start(t, binary, copied(t, data))
	for id, info := range d.known(all) {
		if !reflect.DeepEqual(info, before[id]) {
			t.Errorf("it was %+v, and is %+v", before[id], info)
		}
	}
	stored, err := natslog.LastForSubject(t.Context(), d.inside(), topology.SnapshotStream(0), snapshot)
	if err != nil || stored == nil || string(stored.Data) != "state" {
		t.Errorf("the snapshot is %+v, %v", stored, err)
	}
	stop = d.works("ready")
	d.completed(ready)
	testkit.Check(t, stop())
}

// load is clients that go on submitting, and what was accepted of them so far.
type load struct {
	mu       sync.Mutex
	accepted map[string]bool
}

// submit submits until ctx ends. The attempts that run when the copy is made are over on it soon.
func (l *load) submit(ctx context.Context, d *dev) {
	task := yard.Task{Type: "work", Tasklist: tasklist, Payload: "kept", HeartbeatTimeout: 2 * time.Second}
	for ctx.Err() == nil {
		all, err := d.client.SubmitMany(ctx, slices.Repeat([]yard.Task{task}, 5))
		if err != nil {
			continue // it is paused
		}
		l.mu.Lock()
		for _, id := range all {
			l.accepted[id] = true
		}
		l.mu.Unlock()
	}
}

// soFar are the tasks that were accepted.
func (l *load) soFar() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.accepted))
}

// TestI1_ACopyAtAnInstantUnderLoad: all threads are halted while clients submit and workers work. The copy that is made
// then has every task that had been accepted, and runs it.
func TestI1_ACopyAtAnInstantUnderLoad(t *testing.T) {
	long(t)
	binary, data := build(t), t.TempDir()
	d := start(t, binary, data)
	l := &load{accepted: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() { l.submit(ctx, d) })
	}
	stop := d.works("work")
	testkit.Eventually(t, within, func() error {
		if n := len(l.soFar()); n < 1000 {
			return fmt.Errorf("%d tasks are accepted", n)
		}
		return nil
	})
	d.pause()
	backup := copied(t, data)
	cancel()
	clients.Wait()
	all := l.soFar()
	d.client.Close()
	_ = stop() // what it has in hand reaches no one

	d = start(t, binary, backup)
	stop = d.works("work")
	d.completed(all)
	testkit.Check(t, stop())
	t.Logf("%d tasks were accepted before the copy", len(all))
}
