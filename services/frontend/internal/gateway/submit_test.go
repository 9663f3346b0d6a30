package gateway

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/distribution"
)

func printed(id []byte) string {
	parsed, err := ids.TaskIDFromBytes(id)
	if err != nil {
		panic(err)
	}
	return parsed.String()
}

func TestI2_ARequestIsOneMessage(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		got := accepted(t, <-r.submit(t, tasks(1000)))
		if r.log.messages() != 1 || r.metrics.Counter(signals.SubmitMessages).Value() != 1 || r.metrics.Counter(signals.TasksAccepted, "shop", "main").Value() != 1000 {
			t.Errorf("%d messages, counted %d", r.log.messages(), r.metrics.Counter(signals.SubmitMessages).Value())
		}
		if n, m := r.metrics.Histogram(signals.SubmitDuration, "shop", "main").Count(), r.metrics.Histogram(signals.AppendDuration, "frontend", "submit").Count(); n != 1 || m != 1 {
			t.Errorf("%d submits and %d appends were measured", n, m)
		}
		stored := r.log.tasks(t)
		for _, id := range got {
			if stored[id] != 1 {
				t.Fatalf("task %s is stored %d times", id, stored[id])
			}
		}
		testkit.Equal(t, "tasks", len(stored), 1000)
	})
}

// TestSeed003_ARequestGoesWhereTheFewestTasksAre: the example of the document, with requests of 50, 30, 100 tasks over four
// partitions, and then of 20, 100, 100.
func TestSeed003_ARequestGoesWhereTheFewestTasksAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions = 4
		l := newMemLog(partitions)
		r := newRig(t, func(d *Deps) { d.History, d.Partitioning.History = l, partitions }).running(t)
		queued := make([]int, partitions)
		for _, n := range []int{50, 30, 100, 20, 100, 100} {
			at := map[int]int{}
			for _, task := range accepted(t, <-r.submit(t, tasks(n))) {
				id, err := ids.ParseTaskID(task)
				testkit.NoError(t, err)
				at[id.Partition()]++
			}
			for p, got := range at {
				testkit.Equal(t, "tasks of a request in one partition", got, n)
				testkit.Equal(t, "queued where it goes", queued[p], slices.Min(queued))
				queued[p] += got
			}
		}
		slices.Sort(queued)
		testkit.Equal(t, "queued", fmt.Sprint(queued), "[50 100 120 130]")
	})
}

func TestI1_KnownFailureGoesToTheNextPartition(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		r.log.fault = func(p int, _ natslog.Msg) (bool, error) {
			if p != 2 {
				return false, natslog.ErrNotStored
			}
			return true, nil
		}
		for range 10 {
			for _, id := range accepted(t, <-r.submit(t, tasks(5))) {
				parsed, err := ids.ParseTaskID(id)
				if err != nil || parsed.Partition() != 2 {
					t.Fatalf("task %s in partition %d: %v", id, parsed.Partition(), err)
				}
			}
		}
		if n := len(r.log.tries); n > 12 {
			t.Errorf("%d appends: failed partitions are not left alone", n)
		}
	})
}

func TestNoPartitionIsUnavailableAtTheDeadlineAndRecoversQuickly(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrNotStored }
		began := time.Now()
		got := <-r.submit(t, tasks(1))
		e := faultOf(t, got.err, fault.Unavailable)
		if e.RetryAfter == 0 || got.at.Sub(began) != r.config.RequestTimeout {
			t.Errorf("after %v, retry after %v", got.at.Sub(began), e.RetryAfter)
		}
		time.Sleep(10 * time.Minute)
		waiting := r.submit(t, tasks(1))
		time.Sleep(2500 * time.Millisecond)
		r.log.heals()
		back := time.Now()
		got = <-waiting
		accepted(t, got)
		if got.at.Sub(back) > 1500*time.Millisecond {
			t.Errorf("took %v to notice that the log is back", got.at.Sub(back))
		}
	})
}

func TestUnknownOutcomeIsRepeatedAsTheSameMessage(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		n := 0
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if n++; n < 4 {
				return n == 1, natslog.ErrOutcomeUnknown // stored by the first, which no one hears
			}
			return true, nil
		}
		got := accepted(t, <-r.submit(t, tasks(2)))
		for _, m := range r.log.tries[1:] {
			if m.MsgID != r.log.tries[0].MsgID || m.Subject != r.log.tries[0].Subject || string(m.Data) != string(r.log.tries[0].Data) {
				t.Fatal("a repeat is not the same message")
			}
		}
		stored := r.log.tasks(t)
		if len(stored) != 2 || stored[got[0]] != 1 || stored[got[1]] != 1 {
			t.Errorf("stored %v", stored)
		}
	})
}

// A refusal of the repeat says nothing about the first try: moving on to another
// partition then would double the tasks.
func TestARefusedRepeatDoesNotMakeAnOutcomeKnown(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		n := 0
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if n++; n == 1 {
				return true, natslog.ErrOutcomeUnknown
			}
			return false, natslog.ErrNotStored
		}
		wantCode(t, (<-r.submit(t, tasks(1))).err, fault.Unknown)
		if stored := r.log.tasks(t); len(stored) != 1 {
			t.Errorf("stored %v", stored)
		}
	})
}

func TestUnknownPartitionIsSetAsideForOthers(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		sick := -1
		r.log.fault = func(p int, _ natslog.Msg) (bool, error) {
			if sick < 0 {
				sick = p
			}
			if p == sick {
				return false, natslog.ErrOutcomeUnknown
			}
			return true, nil
		}
		first := r.submit(t, tasks(1))
		synctest.Wait()
		for range 5 {
			began := time.Now()
			got := <-r.submit(t, tasks(1))
			accepted(t, got)
			if got.at != began {
				t.Errorf("held up for %v", got.at.Sub(began))
			}
		}
		wantCode(t, (<-first).err, fault.Unknown)
	})
}

func TestTooLargeForTheLogIsRefused(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		req := tasks(5)
		for _, task := range req.Tasks {
			task.Payload = &yardv1.Payload{Data: make([]byte, 256<<10), Encoding: yardv1.Encoding_ENCODING_BINARY}
		}
		wantAt(t, (<-r.submit(t, req)).err, fault.InvalidArgument, "/tasks")
		req.Tasks = req.Tasks[:3] // more than a group commit takes, and alone in one message
		accepted(t, <-r.submit(t, req))
		testkit.Equal(t, "messages", r.log.messages(), 1)
	})
}

func TestLoadReportsSteer(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		for p, active := range []int64{5000, 10, 5000} {
			r.queued(t, p, active)
		}
		for range 5 {
			accepted(t, <-r.submit(t, tasks(100)))
		}
		testkit.Equal(t, "the idle partition got of 5", len(r.log.partitions[1]), 5)
		r.TakeLoad([]byte("nonsense")) // a hint; no harm
	})
}

func TestAdmissionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) { d.Config.RequestsMax, d.Config.RequestBytesMax = 2, 100 })
		admit := func(bytes int) (call.Place, error) { return r.Run.Admit("shop", bytes) }
		var last call.Place
		for range 2 {
			var err error
			last, err = admit(30)
			testkit.NoError(t, err)
		}
		_, err := admit(1)
		wantLater(t, err, fault.ResourceExhausted)
		r.Run.Release(last)
		_, err = admit(46)
		wantCode(t, err, fault.ResourceExhausted)
		testkit.Check(t, testkit.Err(admit(45)))
	})
}

func TestUnknownDomain(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		for domain, code := range map[string]fault.Code{"nobody": fault.NotFound, "admin": fault.InvalidArgument, "a b": fault.InvalidArgument} {
			answer, got := r.answers(t)
			c := r.call()
			c.Domain = domain
			r.Submit(c, tasks(1), answer)
			wantCode(t, (<-got).err, code)
		}
		testkit.Equal(t, "something was stored", r.log.messages(), 0)
	})
}

// A submission that waits for a partition is answered at its deadline, and not when one is tried again.
func TestWhatFindsNoPartitionIsAnsweredAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alone).running(t)
		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrNotStored }
		first := r.submit(t, tasks(1))
		synctest.Wait() // the partition is set aside
		hasty, got := r.answers(t)
		c := r.call()
		c.Deadline = c.Received.Add(distribution.SetAsideMin / 2)
		r.Submit(c, tasks(1), hasty)
		o := <-got
		wantCode(t, o.err, fault.Unavailable)
		testkit.Equal(t, "it is answered after its deadline", o.at.Sub(c.Deadline), 0)
		wantCode(t, (<-first).err, fault.Unavailable)
	})
}

// A partition is well again when a repeat there is acknowledged, whether it stored the message or found it stored.
func TestAPartitionIsWellAgainWhenARepeatIsAcknowledged(t *testing.T) {
	for name, stored := range map[string]bool{"stored by the first try": true, "by the repeat": false} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t, alone).running(t)
			tries := 0
			r.log.fault = func(int, natslog.Msg) (bool, error) {
				if tries++; tries == 1 {
					return stored, natslog.ErrOutcomeUnknown
				}
				return true, nil
			}
			accepted(t, <-r.submit(t, tasks(1)))
			began := time.Now()
			o := <-r.submit(t, tasks(1))
			accepted(t, o)
			testkit.Equal(t, "the next submit took", o.at.Sub(began), 0)
		})
	}
}

// A report about a partition that does not exist changes nothing.
func TestAReportOfNoPartitionIsDropped(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		for _, p := range []int{-1, rigPartitions, math.MaxInt32} {
			r.storageFull(t, p, true)
		}
		accepted(t, <-r.submit(t, tasks(1)))
		testkit.Check(t, r.Warn())
	})
}
