package gateway

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
)

func (r *rig) cancel(t *testing.T, ids ...string) <-chan reply {
	got := sent(t, r, r.Cancel, &yardv1.CancelRequest{TaskIds: ids})
	return got
}

// TestCancelsAreRefusedWhileTooManyWait: what an owner reports; those under way are not sent again
// meanwhile, and other partitions are as before.
func TestCancelsAreRefusedWhileTooManyWait(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		report := func(load *rpcv1.HistoryLoad) {
			r.TakeLoad(testkit.Encoded(t, load))
		}
		before := r.cancel(t, completion(1, 1).TaskId)
		synctest.Wait()
		for _, load := range []*rpcv1.HistoryLoad{{Partition: 1, CancelsFull: true}, {Partition: 1, CancelsFullOf: []string{"shop"}}} {
			report(load)
			all := verdicts(t, <-r.cancel(t, completion(1, 2).TaskId))
			if all[0].Code != string(fault.ResourceExhausted) || all[0].Message == "" {
				t.Errorf("with %v: %v", load, all[0])
			}
		}
		time.Sleep(3 * time.Second)
		testkit.Equal(t, "batches were sent", len(r.bus.sentEvents()), 1)
		other := r.cancel(t, completion(0, 3).TaskId)
		report(&rpcv1.HistoryLoad{Partition: 1, CancelsFullOf: []string{"rival"}})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for _, e := range r.bus.sentEvents() {
			r.verdict(t, e, 0, 1)
		}
		verdicts(t, <-other)
		verdicts(t, <-before)
		if n := len(r.bus.sentEvents()); n < 3 {
			t.Errorf("%d batches were sent: the first one not again", n)
		}
	})
}

// TestUpdatesAreLikeCancels: they wait in the same account, where a large one counts as many.
func TestUpdatesAreLikeCancels(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		update := func(data string) <-chan reply {
			answer, got := r.answers(t)
			u := &yardv1.TaskUpdate{TaskId: completion(1, 1).TaskId, StartToCloseMs: 5000, Payload: &yardv1.Payload{Data: []byte(data)}}
			r.Update(r.call(), &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{u}}, answer)
			return got
		}
		got := update("1")
		synctest.Wait()
		b := &logv1.VerdictBatch{RequestId: r.bus.sentEvents()[0].id, Verdicts: []*logv1.EventVerdict{{Revision: 7}}}
		r.TakeVerdicts(testkit.Encoded(t, b))
		if v := verdicts(t, <-got)[0]; v.Code != outcome.CodeOK || v.Revision != 7 {
			t.Errorf("%v", v)
		}
		if hints := r.bus.hints; len(hints) != 1 {
			t.Errorf("%d hints of a task whose time may have changed", len(hints))
		}
		large, n := strings.Repeat("1", 200<<10), 0
		for refused := false; !refused && n < 1000; n++ {
			select {
			case got := <-update(large):
				refused = verdicts(t, got)[0].Code == string(fault.ResourceExhausted)
			default:
			}
		}
		if n < 100 || n > 220 {
			t.Errorf("%d updates of 200 KiB are taken without a report", n)
		}
	})
}

// Workers are notified at once of the cancelled tasks that run, and of no others.
func TestWorkersHearOfCancelledTasksThatRun(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		ids := []string{completion(1, 1).TaskId, completion(1, 2).TaskId, completion(1, 3).TaskId}
		for _, running := range [][]bool{{false, true, false}, {false, false, false}} {
			got := r.cancel(t, ids...)
			synctest.Wait()
			sent := r.bus.sentEvents()
			e := sent[len(sent)-1]
			b := &logv1.VerdictBatch{RequestId: e.id}
			for _, yes := range running {
				b.Verdicts = append(b.Verdicts, &logv1.EventVerdict{CancelRequested: yes})
			}
			r.TakeVerdicts(testkit.Encoded(t, b))
			verdicts(t, <-got)
		}
		r.bus.mu.Lock()
		defer r.bus.mu.Unlock()
		if want := `shop {"task_ids":["` + ids[1] + `"]}`; len(r.bus.hints) != 1 || r.bus.hints[0] != want {
			t.Errorf("workers heard %q, want %s", r.bus.hints, want)
		}
	})
}

// I14: cancels of a domain wait for their verdicts, as many as may be under way and more. Those
// of another domain are neither among them nor behind them.
func TestI14_CancelsOfDomainsGoApart(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		add(t, r.catalog, catalog.Domains, "", &yardv1.Domain{Name: "other"})
		id := completion(0, 1).TaskId
		cancel := func(domain string) <-chan reply {
			answer, got := r.answers(t)
			c := r.call()
			c.Domain = domain
			r.Cancel(c, &yardv1.CancelRequest{TaskIds: []string{id}}, answer)
			synctest.Wait()
			return got
		}
		var waiting []<-chan reply
		for range 3 * cancelsInFlight {
			waiting = append(waiting, cancel("shop"))
		}
		before := r.bus.sentEvents()
		got := cancel("other")
		sent := r.bus.sentEvents()[len(before):]
		if len(before) != cancelsInFlight || len(sent) != 1 || len(sent[0].batch.Events) != 1 || sent[0].batch.Events[0].Domain != "other" {
			t.Fatalf("%d batches were under way, then %v", len(before), sent)
		}
		r.verdict(t, sent[0], 0, 1)
		verdicts(t, <-got)
		for _, e := range before {
			r.verdict(t, e, 0, 1)
		}
		synctest.Wait()
		rest := r.bus.sentEvents()[len(before)+1:]
		for _, e := range rest {
			r.verdict(t, e, 0, len(e.batch.Events))
		}
		for _, w := range waiting {
			verdicts(t, <-w)
		}
	})
}
