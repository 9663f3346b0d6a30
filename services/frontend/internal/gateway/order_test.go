package gateway

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// ordered is a request of tasks with these order keys.
func ordered(keys ...string) *yardv1.SubmitRequest {
	req := tasks(len(keys))
	for i, key := range keys {
		req.Tasks[i].OrderKey = key
	}
	return req
}

// keyIn is an order key of a partition.
func keyIn(p int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("key ", i); topology.OrderKeyPartition("shop", key, topology.Partitioning{History: rigPartitions}) == p {
			return key
		}
	}
}

// TestOrderedTasksAreInTheOrderOfTheRequest, whichever partitions they go to; the results name them in the request's order.
func TestOrderedTasksAreInTheOrderOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := uniqueRig(t, nil)
		a, b := keyIn(0), keyIn(2)
		all := accepted(t, <-r.submit(t, withID(ordered(a, b, a, b, a), true)))
		for i, p := range []int{0, 2, 0, 2, 0} {
			id, err := ids.ParseTaskID(all[i])
			if err != nil || id.Partition() != p {
				t.Errorf("task %d is %s, in partition %d", i, all[i], id.Partition())
			}
		}
		for p, want := range map[int]string{0: "0 2 4", 2: "1 3"} {
			got := ""
			for _, task := range batchOf(r.log.partitions[p][0].Data).Tasks {
				got += " " + string(task.Payload)
			}
			if got != " "+want || len(r.log.partitions[p]) != 1 {
				t.Errorf("partition %d has%s in %d messages", p, got, len(r.log.partitions[p]))
			}
		}
		r.log.wantInLine(t)
	})
}

// TestAnOrderedTaskWaitsForItsPartition: it goes nowhere else, and is stored as soon as its partition takes it. A request of which only a part could be
// stored is UNKNOWN, and its repeat stores the rest.
func TestAnOrderedTaskWaitsForItsPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := uniqueRig(t, nil)
		away := true
		r.log.fault = func(p int, _ natslog.Msg) (bool, error) {
			if p == 1 && away {
				return false, natslog.ErrNotStored
			}
			return true, nil
		}
		one := withID(ordered(keyIn(1)), true)
		if o := <-r.submit(t, one); fault.CodeOf(o.err) != fault.Unavailable {
			t.Fatalf("its partition is away: %v", o.err)
		}
		both := withID(ordered(keyIn(0), keyIn(1)), true)
		if o := <-r.submit(t, both); fault.CodeOf(o.err) != fault.Unknown {
			t.Fatalf("one of two is away: %v", o.err)
		}
		time.AfterFunc(3*time.Second, func() { r.log.mu.Lock(); away = false; r.log.mu.Unlock() })
		accepted(t, <-r.submit(t, withID(ordered(keyIn(1)), true)))
		both.Tries++
		all := accepted(t, <-r.submit(t, both))
		wantMarksOnce(t, r.log, len(all)+1)
	})
}

// wantMarksOnce checks that so many tasks are stored, each once.
func wantMarksOnce(t *testing.T, l *memLog, n int) {
	t.Helper()
	stored := 0
	for _, of := range l.counting() {
		for id, times := range of {
			if stored++; times != 1 {
				t.Errorf("task %s is stored %d times", id, times)
			}
		}
	}
	if stored != n {
		t.Errorf("%d tasks are stored, want %d", stored, n)
	}
}

// TestOrderKeysNeedTheirLogVersion: an older owner would not read the tasks.
func TestOrderKeysNeedTheirLogVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t, func(d *Deps) { d.LogVersion = func() uint32 { return logversion.OrderKeys - 1 } })
		o := <-r.submit(t, ordered("a"))
		if e := fault.From(o.err); e == nil || e.Code != fault.FailedPrecondition || e.Path != "/tasks/0/order_key" {
			t.Errorf("got %v", o.err)
		}
		for path, req := range map[string]*yardv1.ListRequest{"/order_key": {OrderKey: "a"}, "/blocked": {Blocked: true}} {
			_, err := asked(r, "shop", false, r.List, req)
			if e := fault.From(err); e == nil || e.Code != fault.FailedPrecondition || e.Path != path {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

// TestAFullTasklistRefusesOrderedTasks, those of several partitions as a whole.
func TestAFullTasklistRefusesOrderedTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := uniqueRig(t, nil)
		r.cap(t, "main", 2)
		if o := <-r.submit(t, withID(ordered(keyIn(0), keyIn(1), keyIn(2)), true)); fault.CodeOf(o.err) != fault.ResourceExhausted {
			t.Errorf("three where two may queue: %v", o.err)
		}
		wantMarksOnce(t, r.log, 0)
		accepted(t, <-r.submit(t, withID(ordered(keyIn(0), keyIn(1)), true)))
	})
}
