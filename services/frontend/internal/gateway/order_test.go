package gateway

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
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
	onKnowing(t, func(t *testing.T, r *rig) {
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
	onKnowing(t, func(t *testing.T, r *rig) {
		away := true
		r.log.fault = func(p int, _ natslog.Msg) (bool, error) {
			if p == 1 && away {
				return false, natslog.ErrNotStored
			}
			return true, nil
		}
		one := withID(ordered(keyIn(1)), true)
		wantCode(t, (<-r.submit(t, one)).err, fault.Unavailable)
		both := withID(ordered(keyIn(0), keyIn(1)), true)
		wantCode(t, (<-r.submit(t, both)).err, fault.Unknown)
		time.AfterFunc(3*time.Second, func() { r.log.mu.Lock(); away = false; r.log.mu.Unlock() })
		accepted(t, <-r.submit(t, withID(ordered(keyIn(1)), true)))
		both.Tries++
		all := accepted(t, <-r.submit(t, both))
		wantMarksOnce(t, r.log, len(all)+1)
	})
}

// TestAPartOfWhichNothingIsKnownMakesAllUnknown, though another one is certainly not stored: the client does not learn that nothing was.
func TestAPartOfWhichNothingIsKnownMakesAllUnknown(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.log.fault = func(p int, _ natslog.Msg) (bool, error) {
			if p == 1 {
				return false, natslog.ErrNotStored
			}
			return false, errDown
		}
		wantCode(t, (<-r.submit(t, withID(ordered(keyIn(0), keyIn(1)), true))).err, fault.Unknown)
		r.log.mu.Lock()
		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrNotStored }
		r.log.mu.Unlock()
		wantCode(t, (<-r.submit(t, withID(ordered(keyIn(0), keyIn(1)), true))).err, fault.Unavailable)
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
	testkit.Equal(t, "tasks are stored", stored, n)
}

// TestAUniqueKeyCountsWithinAnOrderKey: a task with both goes where its order key does, and so does the word on its unique key, which another order key has for
// itself, and what has none.
func TestAUniqueKeyCountsWithinAnOrderKey(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		both := func(order ...string) *yardv1.SubmitRequest {
			req := ordered(order...)
			for i, task := range req.Tasks {
				task.UniqueKey, task.Tasklist = "one", fmt.Sprint("list-", i)
			}
			return withID(req, true)
		}
		a, b := keyIn(0), keyIn(2)
		_, first := outcomesOf(t, <-r.submit(t, both(a, b)))
		_, plain := outcomesOf(t, <-r.submit(t, withID(keyed("one"), true)))
		if len(first) != 2 || len(plain) != 1 {
			t.Fatalf("created %v and %v", first, plain)
		}
		got, created := outcomesOf(t, <-r.submit(t, both(b, keyIn(1), a)))
		if len(created) != 1 || got[0] != "existing "+first[1] || got[2] != "existing "+first[0] {
			t.Errorf("got %v, the first ones are %v", got, first)
		}
		gate := make(chan struct{}) // what waits for it goes in one atomic batch
		r.log.gate = gate
		var together []<-chan reply
		for i := range 4 {
			req := ordered(a)
			req.Tasks[0].UniqueKey, req.Tasks[0].Tasklist = fmt.Sprint("many ", i), fmt.Sprint("list-", i)
			together = append(together, r.submit(t, withID(req, true)))
			synctest.Wait()
		}
		stored := r.log.messages()
		gate <- struct{}{}
		gate <- struct{}{}
		for _, got := range together {
			outcomesOf(t, <-got)
		}
		r.log.gate = nil
		testkit.Equal(t, "messages of four requests, of which three go together", r.log.messages()-stored, 6)
		r.log.wantInLine(t)
		for p, msgs := range r.log.partitions {
			for i, m := range submits(msgs) {
				for _, task := range batchOf(m.Data).Tasks {
					if at := i - int(task.Unique.Before); at < 0 || msgs[at].Subject != topology.UniqueKey(p, "shop", topology.UniqueWithin(task.Order.GetKey(), task.Unique.Key)) {
						t.Errorf("message %d of partition %d: the word on the key of a task does not lie %d before", i, p, task.Unique.Before)
					}
				}
			}
		}
	})
}

// TestManyTasksWithBothKeysStayInOrder: more than one atomic batch takes; where the first of these is not stored, none is that comes after it.
func TestManyTasksWithBothKeysStayInOrder(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		many := func(from int) *yardv1.SubmitRequest {
			req := tasks(2*partTasksMax + 1)
			for i, task := range req.Tasks {
				task.OrderKey, task.UniqueKey = keyIn(1), fmt.Sprint(from+i)
			}
			return withID(req, true)
		}
		outcomesOf(t, <-r.submit(t, many(0)))
		n := 0
		for _, m := range submits(r.log.partitions[1]) {
			for _, task := range batchOf(m.Data).Tasks {
				if string(task.Payload) != fmt.Sprint(n) {
					t.Fatalf("task %s is stored at %d", task.Payload, n)
				}
				n++
			}
		}
		testkit.Equal(t, "tasks are stored", n, 2*partTasksMax+1)
		calls := 0
		r.log.atomicFault = func(func()) (bool, error) { // only the first batch is refused, as long as anyone asks
			if calls++; calls == 1 {
				return false, natslog.ErrFull
			}
			return true, nil
		}
		if o := <-r.submit(t, many(10_000)); o.err == nil {
			t.Error("stored, though its partition was full")
		}
		testkit.Equal(t, "batches were sent", calls, 1)
	})
}

// TestAFullTasklistRefusesOrderedTasks, those of several partitions as a whole.
func TestAFullTasklistRefusesOrderedTasks(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.cap(t, "main", 2)
		wantCode(t, (<-r.submit(t, withID(ordered(keyIn(0), keyIn(1), keyIn(2)), true))).err, fault.InvalidArgument)
		wantMarksOnce(t, r.log, 0)
		accepted(t, <-r.submit(t, withID(ordered(keyIn(0), keyIn(1)), true)))
	})
}

// TestAFullOrderKeyRefuses a request with a task of it, as a whole, until its owner says otherwise; other keys and other domains go on.
func TestAFullOrderKeyRefuses(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		full, other := keyIn(0), keyIn(1)
		report := func(keys ...*rpcv1.FullKey) {
			r.TakeLoad(testkit.Encoded(t, &rpcv1.HistoryLoad{Partition: 0, FullKeys: keys}))
		}
		report(&rpcv1.FullKey{Domain: "shop", OrderKey: full, Tasks: 1000}, &rpcv1.FullKey{Domain: "rival", OrderKey: other, Tasks: 1000})
		wantFull(t, <-r.submit(t, withID(ordered(other, full), true)), "/tasks/1/order_key")
		wantMarksOnce(t, r.log, 0)
		accepted(t, <-r.submit(t, withID(ordered(other), true)))
		report()
		accepted(t, <-r.submit(t, withID(ordered(full), true)))
	})
}

// TestARepeatWithOtherKeysIsNotAnsweredForOthers: a careless client repeats a request with tasks of other keys, so that its parts have other numbers of tasks.
// What is answered as stored is stored.
func TestARepeatWithOtherKeysIsNotAnsweredForOthers(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		req := withID(ordered(keyIn(0), keyIn(1), keyIn(2)), true)
		accepted(t, <-r.submit(t, req))
		req.Tasks[1].OrderKey = keyIn(0)
		req.Tries++
		o := <-r.submit(t, req)
		if o.err != nil {
			t.Fatal(o.err)
		}
		for i, id := range accepted(t, o) {
			stored := 0
			for p := range r.log.partitions {
				for _, m := range submits(r.log.partitions[p]) {
					for _, task := range batchOf(m.Data).Tasks {
						if ids.TaskID(task.Id).String() == id {
							stored++
						}
					}
				}
			}
			testkit.Equal(t, fmt.Sprintf("task %d, %s, was said to be created, and is stored times", i, id), stored, 1)
		}
	})
}
