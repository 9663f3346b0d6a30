package gateway

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
)

// alone has one partition, so that all meet in one group commit.
func alone(d *Deps) { d.Partitioning.History = 1 }

// plugged is a rig whose first flush is held up, so that what comes next gathers until open.
func plugged(t *testing.T) (r *rig, open func()) {
	t.Helper()
	r = newRig(t, alone).running(t)
	r.log.gate = make(chan struct{})
	plug := r.submit(t, tasks(1))
	synctest.Wait()
	return r, func() {
		t.Helper()
		close(r.log.gate)
		accepted(t, <-plug)
	}
}

// submitAs is submit for a domain, which is made if needed.
func (r *rig) submitAs(t *testing.T, domain string, req *yardv1.SubmitRequest) <-chan reply {
	t.Helper()
	add(t, r.catalog, catalog.Domains, "", &yardv1.Domain{Name: domain})
	answer, got := r.answers(t)
	r.Submit(r.from(domain), req, answer)
	return got
}

// subjects are those of the log's messages behind the first, which is the plug, with the number of tasks.
func (r *rig) subjects(t *testing.T) map[string]int {
	t.Helper()
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	found := map[string]int{}
	for _, m := range r.log.partitions[0][1:] {
		found[m.Subject] += len(decode(t, m.Data).Tasks)
	}
	return found
}

func wantSubjects(t *testing.T, r *rig, want map[string]int) {
	t.Helper()
	testkit.Equal(t, "stored", r.subjects(t), want)
	if n := r.log.messages(); n != len(want)+1 || int(r.metrics.Counter(signals.SubmitMessages).Value()) != n {
		t.Errorf("%d messages, counted %d, want %d", n, r.metrics.Counter(signals.SubmitMessages).Value(), len(want)+1)
	}
}

// reported makes the owner of partition 0 say how much may be filed in shared messages.
func (r *rig) reported(t *testing.T, tasks, bytes int64) { r.reportedAsOf(t, tasks, bytes, 0) }

// reportedAsOf is reported by an owner that has read so far.
func (r *rig) reportedAsOf(t *testing.T, tasks, bytes int64, read uint64) {
	t.Helper()
	r.TakeLoad(testkit.Encoded(t, &rpcv1.HistoryLoad{SharedTasks: tasks, SharedBytes: bytes, SharedRead: read}))
}

// queued makes the owner of partition p say how many tasks it has.
func (r *rig) queued(t *testing.T, p int, active int64) {
	t.Helper()
	r.TakeLoad(testkit.Encoded(t, &rpcv1.HistoryLoad{Partition: int32(p), Active: active}))
}

// of is a request of n tasks of a tasklist and priority; 0 = due later.
func of(n int, tasklist string, priority int32) *yardv1.SubmitRequest {
	req := tasks(n)
	req.Tasklist = tasklist
	for _, t := range req.Tasks {
		if t.Priority = priority; priority == 0 {
			t.DelayMs = 60_000
		}
	}
	return req
}

func TestI2_RequestsOfOneDestinationShareMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		const requests = 200
		var answers []<-chan reply
		for range requests {
			answers = append(answers, r.submit(t, tasks(3)))
		}
		synctest.Wait()
		open()
		allAccepted(t, answers)
		wantSubjects(t, r, map[string]int{topology.Submit(0, 3, "shop", "main"): 3 * requests})
	})
}

// A thousand tenants with a task each cost the log one sync.
func TestSmallSubmitsOfManyTenantsShareAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		var answers []<-chan reply
		for i := range 500 {
			answers = append(answers, r.submitAs(t, fmt.Sprintf("tenant%d", i), of(1, "main", int32(i%6))))
		}
		flood := r.submitAs(t, "flood", of(100, "main", 5))
		synctest.Wait()
		open()
		allAccepted(t, append(answers, flood))
		wantSubjects(t, r, map[string]int{topology.SubmitShared(0, ids.LaneFirst): 500, topology.Submit(0, 5, "flood", "main"): 100})
		first := r.log.partitions[0][1].Subject
		testkit.Equal(t, "stands before the many", first, topology.SubmitShared(0, ids.LaneFirst))
	})
}

// I7: with a backlog, what is less urgent does not stand before what is more urgent on disk.
func TestI7_WithoutRoomSharedMessagesKeepPriorities(t *testing.T) {
	for name, report := range map[string]func(t *testing.T, r *rig){
		"no tasks": func(t *testing.T, r *rig) { r.reported(t, 0, 1<<20) },
		"no bytes": func(t *testing.T, r *rig) { r.reported(t, 1000, 100) },
		"an owner that says nothing of it": func(t *testing.T, r *rig) {
			r.TakeLoad(nil)
		},
		"spent": func(t *testing.T, r *rig) { r.reported(t, 11, 1<<20) },
	} {
		inBubble(t, name, func(t *testing.T) {
			r, open := plugged(t)
			report(t, r)
			var answers []<-chan reply
			want := map[string]int{}
			for _, priority := range []int32{0, 1, 2, 3, 4, 5} {
				for _, domain := range []string{"one", "two"} {
					answers = append(answers, r.submitAs(t, domain, of(1, "main", priority)))
				}
				want[topology.SubmitShared(0, ids.Lane(priority))] = 2
			}
			synctest.Wait()
			open()
			allAccepted(t, answers)
			wantSubjects(t, r, want)
		})
	}
}

// I7: what is in the log and not read as of a report takes of the room that it tells of.
func TestI7_WhatIsNotReadTakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alone).running(t)
		shared, its := topology.SubmitShared(0, ids.LaneFirst), topology.Submit(0, 3, "shop", "main")
		for i, step := range []struct {
			read uint64
			want string
		}{{0, shared}, {0, its}, {1, shared}, {2, its}, {3, shared}} {
			r.reportedAsOf(t, 1, 1<<20, step.read)
			accepted(t, <-r.submit(t, tasks(1)))
			synctest.Wait()
			if got := r.log.partitions[0][i].Subject; got != step.want {
				t.Fatalf("message %d, where %d are read: %s, want %s", i+1, step.read, got, step.want)
			}
		}
	})
}

// I2: a request that spans tasklists is whole, in one message, which it may share.
func TestI2_TasklistsOfOneRequestAreStoredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		req := tasks(4)
		req.Tasks[1].Tasklist = "other"
		other := r.submitAs(t, "two", tasks(1))
		spans := r.submit(t, req)
		many := tasks(100)
		many.Tasks[0].Tasklist, many.Tasks[99].Priority = "other", 2
		large := r.submitAs(t, "three", many)
		synctest.Wait()
		n := 0
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if n++; n == 2 { // the first shared one
				return true, natslog.ErrOutcomeUnknown
			}
			return true, nil
		}
		open()
		for _, a := range []<-chan reply{other, spans, large} {
			got := accepted(t, <-a)
			stored := r.log.tasks(t)
			for _, id := range got {
				if stored[id] != 1 {
					t.Fatalf("task %s stored %d times", id, stored[id])
				}
			}
		}
		wantSubjects(t, r, map[string]int{topology.SubmitShared(0, ids.LaneFirst): 5, topology.SubmitOf(0, 2, "three"): 100})
	})
}

// Each message of a flush has its own outcome: what is stored is answered, what is not goes to another
// partition, what is unknown is resolved; and the next flush does not wait for that.
func TestMessagesOfAFlushFailEachForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) { d.Partitioning.History = 2 }).running(t)
		r.queued(t, 1, 5000)
		const home = 0
		r.log.gate = make(chan struct{})
		plug := r.submit(t, tasks(1))
		synctest.Wait()
		answers := map[string]<-chan reply{}
		for _, domain := range []string{"stored", "moved", "unknown"} {
			answers[domain] = r.submitAs(t, domain, tasks(100))
		}
		synctest.Wait()
		unknown := 0
		r.log.fault = func(p int, m natslog.Msg) (bool, error) {
			switch {
			case strings.Contains(m.Subject, ".moved.") && p == home:
				return false, natslog.ErrNotStored
			case strings.Contains(m.Subject, ".unknown."):
				if unknown++; unknown < 3 {
					return unknown == 2, natslog.ErrOutcomeUnknown
				}
			}
			return true, nil
		}
		close(r.log.gate)
		began := time.Now()
		accepted(t, <-plug)
		for _, domain := range []string{"stored", "moved", "unknown"} {
			got := <-answers[domain]
			stored := r.log.tasks(t)
			for _, id := range accepted(t, got) {
				at, err := ids.ParseTaskID(id)
				if err != nil || stored[id] != 1 || (at.Partition() == home) == (domain == "moved") {
					t.Fatalf("a task of %s in partition %d stored %d times: %v", domain, at.Partition(), stored[id], err)
				}
			}
			if late := got.at.Sub(began); (late > 0) != (domain == "unknown") {
				t.Errorf("%s is answered after %v", domain, late)
			}
		}
	})
}

// I11: a domain with many submits in the queue delays another's by about a flush.
func TestI11_DomainsTakeTurnsInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		var flood []<-chan reply
		for range 50 {
			flood = append(flood, r.submitAs(t, "flood", tasks(1000)))
		}
		mine := r.submitAs(t, "small", tasks(1))
		synctest.Wait()
		open()
		allAccepted(t, flood)
		accepted(t, <-mine)
		at := slices.IndexFunc(r.log.partitions[0], func(m natslog.Msg) bool { return decode(t, m.Data).Tasks[0].Domain == "small" })
		if at < 0 || at > 2 {
			t.Errorf("message %d of %d", at, r.log.messages())
		}
	})
}

// I11: who comes while a flood is flushed waits for a part of what the flood has waiting, in messages of the flood's share.
func TestI11_AFloodHasAShareOfAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		var flood []<-chan reply
		for range 20 {
			flood = append(flood, r.submitAs(t, "flood", tasks(100)))
		}
		synctest.Wait()
		open()
		allAccepted(t, flood)
		all := 0
		for _, m := range r.log.partitions[0][1:] {
			n := len(decode(t, m.Data).Tasks)
			if all += n; n > 700 {
				t.Errorf("%d tasks are stored at once", n)
			}
		}
		testkit.Equal(t, "stored", all, 2000)
	})
}

// I14: what waits is bounded, and a domain that fills the queue is refused before others are.
func TestI14_TheQueueLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		var waiting []<-chan reply
		var refused reply
		for {
			got := r.submitAs(t, "flood", tasks(1000))
			select {
			case refused = <-got:
			default:
				waiting = append(waiting, got)
				continue
			}
			break
		}
		wantLater(t, refused.err, fault.ResourceExhausted)
		waiting = append(waiting, r.submitAs(t, "small", tasks(1000)))
		synctest.Wait()
		open()
		allAccepted(t, waiting)
	})
}

// What waits when the partition fails goes elsewhere, and what waits too long is refused.
func TestWhatWaitsMovesWithItsPartition(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		r.queued(t, 1, 5000)
		r.queued(t, 2, 5000)
		const sick = 0
		r.log.gate = make(chan struct{})
		r.log.fault = func(p int, _ natslog.Msg) (bool, error) {
			if p == sick {
				return false, natslog.ErrNotStored
			}
			return true, nil
		}
		answers := []<-chan reply{r.submit(t, tasks(1))}
		synctest.Wait()
		for range 10 {
			answers = append(answers, r.submit(t, tasks(1)))
		}
		hasty, got := r.answers(t)
		c := r.call()
		c.Deadline = c.Received.Add(50 * time.Millisecond)
		r.Submit(c, tasks(1), hasty)
		time.Sleep(50 * time.Millisecond)
		close(r.log.gate)
		for _, a := range answers {
			for _, id := range accepted(t, <-a) {
				if at, err := ids.ParseTaskID(id); err != nil || at.Partition() == sick {
					t.Errorf("in the partition that failed: %v", err)
				}
			}
		}
		wantCode(t, (<-got).err, fault.Unavailable)
		tried := 0
		for _, m := range r.log.tries {
			if partitionOf(m.Subject) == sick {
				tried++
			}
		}
		testkit.Equal(t, "messages were sent to the partition that failed", tried, 1)
	})
}

// What has waited past its deadline is not stored any more: its client may have given up, and repeats it.
func TestWhatIsLateIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		hasty, got := r.answers(t)
		c := r.call()
		c.Deadline = c.Received.Add(time.Second)
		r.Submit(c, tasks(1), hasty)
		mine := r.submitAs(t, "two", tasks(1))
		time.Sleep(time.Second)
		open()
		wantCode(t, (<-got).err, fault.Unavailable)
		accepted(t, <-mine)
		if stored := r.log.tasks(t); len(stored) != 2 {
			t.Errorf("stored %v", stored)
		}
	})
}

// I7: what a flush stores beside its shared messages takes none of their room, however long it is unread.
func TestI7_FloodsTakeNoSharedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		shared := topology.SubmitShared(0, ids.LaneFirst)
		r.reportedAsOf(t, 2, 1<<20, 0) // one of it is the plug's
		answers := []<-chan reply{r.submitAs(t, "flood", of(100, "main", 5)), r.submitAs(t, "two", tasks(1))}
		synctest.Wait()
		open()
		allAccepted(t, answers)
		wantSubjects(t, r, map[string]int{shared: 1, topology.Submit(0, 5, "flood", "main"): 100})
		synctest.Wait()                // clients are answered before the flush is over
		r.reportedAsOf(t, 1, 1<<20, 2) // the flood, behind the shared one, is not read
		accepted(t, <-r.submit(t, tasks(1)))
		testkit.Equal(t, "filed as", r.log.partitions[0][3].Subject, shared)
	})
}

// Clients that submit again as soon as they are answered meet in one message, though their answers take a moment; one
// alone is not held up.
func TestClientsOfOneFlushMeetInTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, rounds, syncs = 20, 50, 4 * time.Millisecond
		r := newRig(t, alone).running(t)
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			time.Sleep(syncs)
			return true, nil
		}
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				for range rounds {
					accepted(t, <-r.submit(t, tasks(1)))
					time.Sleep(time.Duration(i) * syncs / 100) // its way back
				}
			})
		}
		all.Wait()
		if n := r.log.messages(); n > rounds+5 {
			t.Errorf("%d messages for %d rounds of %d clients", n, rounds, clients)
		}
		time.Sleep(time.Second)
		began := time.Now()
		accepted(t, <-r.submit(t, tasks(1)))
		accepted(t, <-r.submit(t, tasks(1)))
		testkit.Equal(t, "two submits, one after the other, took", time.Since(began), 2*syncs)
	})
}

// TestI11_ATasklistThatLagsGoesAlone: what its owner names goes under its own subject, what else its domain has with others.
func TestI11_ATasklistThatLagsGoesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		of := func(list string) *yardv1.SubmitRequest {
			req := tasks(1)
			req.Tasks[0].Tasklist = list
			return req
		}
		for _, at := range []string{"shop.mail", "shop.bulk"} { // the last report holds
			r.TakeLoad(testkit.Encoded(t, &rpcv1.HistoryLoad{SharedTasks: 1000, SharedBytes: 1 << 20, Apart: []string{at}}))
		}
		var got []<-chan reply
		for _, list := range []string{"bulk", "mail", "bulk"} {
			got = append(got, r.submitAs(t, "shop", of(list)))
		}
		got = append(got, r.submitAs(t, "depot", of("bulk")))
		synctest.Wait()
		open()
		allAccepted(t, got)
		places := map[ids.Place]int{}
		for subject, n := range r.subjects(t) {
			places[topology.PlaceOfSubmit(0, subject)] += n
		}
		testkit.Equal(t, "filed", places, map[ids.Place]int{"shop.bulk": 2, "": 2})
	})
}

// TestI11_WhatLagsNeverGoesWithOthers: more domains lag than get messages of their own in a flush. What others share holds
// nothing of them, and all is stored.
func TestI11_WhatLagsNeverGoesWithOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, open := plugged(t)
		load := &rpcv1.HistoryLoad{SharedTasks: 1000, SharedBytes: 1 << 20}
		for i := range filing.ApartMax + 10 {
			load.Apart = append(load.Apart, fmt.Sprint("flood", i))
		}
		r.TakeLoad(testkit.Encoded(t, load))
		got := []<-chan reply{r.submitAs(t, "shop", tasks(1))}
		for _, domain := range load.Apart {
			got = append(got, r.submitAs(t, domain, tasks(1)))
		}
		synctest.Wait()
		open()
		allAccepted(t, got)
		for subject, n := range r.subjects(t) {
			if topology.PlaceOfSubmit(0, subject) == "" && n != 1 {
				t.Errorf("%s has %d tasks", subject, n)
			}
		}
	})
}
