package partition_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// submitOf files tasks under a domain.
func (s *shell) submitOf(lane ids.Lane, domain string, all ...*logv1.Record) {
	data, err := (&logv1.Batch{Tasks: all, LogVersion: logversion.Queues}).MarshalVT()
	if err != nil {
		s.t.Error(err)
	}
	s.world.AppendSubmitOf(replica.Queue{Lane: lane, Domain: domain}, data)
}

// grants grants a task to a worker of its domain, and ends the attempt.
func (s *shell) grants(tr ids.Trigger, domain string) {
	for _, kind := range []logv1.EventKind{logv1.EventKind_EVENT_KIND_STARTED, logv1.EventKind_EVENT_KIND_COMPLETED} {
		e := outcome(tr, kind)
		e.Domain = domain
		s.event(e)
	}
}

// I11: a domain without a worker fills the window many times over. Another's task of the same priority is run all
// the same, also by the next owner; and when a worker comes, each of the flood's tasks is run once. In the end nothing
// is left in the log.
func TestI11_AFloodWithoutAWorkerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		const window, each, messages = 10, 4, 30
		served := map[string]bool{}
		domains := map[ids.TaskID]string{}
		s.worker = func(tr ids.Trigger) {
			s.mu.Lock()
			domain := domains[tr.ID]
			ok := served[domain]
			s.mu.Unlock()
			if ok {
				s.grants(tr, domain)
			}
		}
		n := uint64(0)
		submit := func(domain string, each int) (all []ids.TaskID) {
			var records []*logv1.Record
			s.mu.Lock()
			for range each {
				n++
				all = append(all, newID(n))
				domains[all[len(all)-1]] = domain
				records = append(records, task(all[len(all)-1], domain))
			}
			s.mu.Unlock()
			s.submitOf(3, domain, records...)
			return all
		}
		serve := func(domain string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			served[domain] = true
		}
		deps := func() partition.Deps {
			d := s.deps("n")
			d.LogVersion = func() uint32 { return logversion.Queues }
			d.Config.WindowTasks, d.Config.PurgeEvery = window, time.Second
			return d
		}
		ends := func(what string, all []ids.TaskID) {
			t.Helper()
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				left := 0
				for _, id := range all {
					if s.archived()[id] == 0 {
						left++
					}
				}
				if left == 0 {
					return
				}
			}
			t.Fatalf("%s: it does not end", what)
		}
		o, stop := run(deps())
		<-o.Ready()
		serve("shop")
		var flood []ids.TaskID
		for range messages {
			flood = append(flood, submit("flood", each)...)
		}
		ends("behind a flood", submit("shop", 1))
		described, err := o.Describe(t.Context(), &rpcv1.DescribePartitionRequest{Domain: "flood", Tasklist: "mail"})
		if err != nil || described.LaggingLanes != 1 || described.Ready > 3*window || described.UnreadBatches < messages/2 {
			t.Errorf("the flood is described as %v, %v", described, err)
		}
		if described, err := o.Describe(t.Context(), &rpcv1.DescribePartitionRequest{Domain: "shop", Tasklist: "mail"}); err != nil || described.LaggingLanes != 0 || described.UnreadBatches != 0 {
			t.Errorf("the other is described as %v, %v", described, err)
		}
		time.Sleep(time.Minute)
		if n := s.world.LogLength(); n > messages+2 { // and the events since the flood was read
			t.Errorf("%d messages are kept, %d are needed", n, messages+2)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		cp := s.world.Checkpoint()
		if len(cp.Queues) == 0 || cp.LogVersion != logversion.Queues {
			t.Errorf("the checkpoint is %v", cp)
		}

		o, stop = run(deps())
		<-o.Ready()
		ends("after a takeover", submit("shop", 1))
		serve("flood")
		o.Reconnected(t.Context()) // what is ready is triggered again
		ends("the flood", flood)
		time.Sleep(time.Minute)
		for id, copies := range s.archived() {
			if copies != 1 {
				t.Errorf("task %s was archived %d times", id, copies)
			}
		}
		if n := s.world.LogLength(); n > 0 {
			t.Errorf("%d messages are left in the log", n)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if cp := s.world.Checkpoint(); len(cp.Queues) > 0 {
			t.Errorf("the domain lags for ever: %v", cp.Queues)
		}
	})
}

// I13: in a cluster that writes an older log version no domain lags: its programs would lose what is passed over.
func TestI13NothingLagsInAnOlderLogVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		d := s.deps("n")
		d.LogVersion = func() uint32 { return logversion.Fences }
		d.Config.WindowTasks = 2
		o, stop := run(d)
		<-o.Ready()
		for i := range uint64(5) {
			s.submitOf(3, "flood", task(newID(i+1), "flood"))
		}
		s.submitOf(3, "shop", task(newID(9), "shop"))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if cp := s.world.Checkpoint(); len(cp.Queues) > 0 || cp.LogVersion != logversion.Fences {
			t.Errorf("the checkpoint is %v", cp)
		}
	})
}
