package partition_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/gauges"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// submitOf files tasks at a place.
func (s *shell) submitOf(lane ids.Lane, at ids.Place, all ...*logv1.Record) {
	data, err := (&logv1.Batch{Tasks: all, LogVersion: 1}).MarshalVT()
	testkit.Check(s.t, err)
	s.world.AppendSubmitOf(replica.Queue{Lane: lane, Place: at}, data)
}

// grants grants a task to a worker of its domain, and ends the attempt.
func (s *shell) grants(tr ids.Trigger, domain string) {
	for _, kind := range []logv1.EventKind{logv1.EventKind_EVENT_KIND_STARTED, logv1.EventKind_EVENT_KIND_COMPLETED} {
		e := outcome(tr, kind)
		e.Domain = domain
		s.event(e)
	}
}

// tenants are domains, or tasklists of one as domain.tasklist, some of which have a worker.
type tenants struct {
	*shell
	served map[string]bool
	domain map[ids.TaskID]string
	n      uint64
}

func newTenants(t *testing.T) *tenants {
	s := &tenants{shell: newShell(t), served: map[string]bool{}, domain: map[ids.TaskID]string{}}
	s.worker = func(tr ids.Trigger) {
		s.mu.Lock()
		domain := s.domain[tr.ID]
		served := s.served[domain]
		s.mu.Unlock()
		if served {
			s.grants(tr, ids.Place(domain).Domain())
		}
	}
	return s
}

// owner runs an owner with a window of ten tasks.
func (s *tenants) owner() (*partition.Owner, func() error) {
	d := s.deps("n")
	d.Config.WindowTasks, d.Config.PurgeEvery = 10, time.Second
	o, stop := ready(d)
	return o, stop
}

func (s *tenants) serve(domain string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[domain] = true
}

// servedBy lets a task be run by the worker of a domain.
func (s *tenants) servedBy(id ids.TaskID, domain string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.domain[id] = domain
}

// submit files a message of so many tasks of the tasklist mail.
func (s *tenants) submit(domain string, tasks int) (all []ids.TaskID) {
	return s.submitAt(domain, ids.PlaceOf(domain, "mail"), tasks)
}

// submitAt files a message of so many tasks of a tasklist, which a tenant's worker takes.
func (s *tenants) submitAt(tenant string, at ids.Place, tasks int) (all []ids.TaskID) {
	var records []*logv1.Record
	s.mu.Lock()
	for range tasks {
		s.n++
		id := newID(s.n)
		s.domain[id] = tenant
		r := task(id, at.Domain())
		r.Tasklist = at.Tasklist()
		all, records = append(all, id), append(records, r)
	}
	s.mu.Unlock()
	s.submitOf(3, at, records...)
	return all
}

// end waits until tasks have ended.
func (s *tenants) end(what string, all []ids.TaskID) {
	s.t.Helper()
	for range 600 {
		time.Sleep(100 * time.Millisecond)
		archived := s.archived()
		if !slices.ContainsFunc(all, func(id ids.TaskID) bool { return archived[id] == 0 }) {
			return
		}
	}
	s.t.Fatalf("%s: it does not end", what)
}

// describe compares what is reported of a domain.
func (s *tenants) describe(o *partition.Owner, domain string, lags bool, unread int64) {
	s.t.Helper()
	d, err := queries.Of(o).Describe(s.t.Context(), &rpcv1.DescribePartitionRequest{Domain: domain, Tasklist: "mail"})
	if err != nil || d.LaggingLanes != 0 != lags || d.UnreadBatches < unread || !lags && d.UnreadBatches > 0 {
		s.t.Errorf("%s is described as %v, %v", domain, d, err)
	}
}

// I11: a domain without a worker fills the window many times over. Another's task of the same priority is run all
// the same, also by the next owner; and when a worker comes, each of the flood's tasks is run once. In the end nothing
// is left in the log.
func TestI11_AFloodWithoutAWorkerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 30
		s := newTenants(t)
		o, stop := s.owner()
		s.serve("shop")
		var flood []ids.TaskID
		for range messages {
			flood = append(flood, s.submit("flood", 4)...)
		}
		s.end("behind a flood", s.submit("shop", 1))
		s.describe(o, "flood", true, messages/2)
		s.describe(o, "shop", false, 0)
		time.Sleep(time.Minute)
		if n := s.world.LogLength(); n > messages+2 { // and the events since the flood was read
			t.Errorf("%d messages are kept, %d are needed", n, messages+2)
		}
		testkit.NoError(t, stop())
		if cp := s.world.Checkpoint(); cp.Snapshot == nil || cp.LogVersion != 1 {
			t.Errorf("the checkpoint is %v", cp)
		}

		o, stop = s.owner()
		s.end("after a takeover", s.submit("shop", 1))
		s.serve("flood")
		o.Reconnected(t.Context()) // what is ready is triggered again
		s.end("the flood", flood)
		time.Sleep(time.Minute)
		for id, copies := range s.archived() {
			if copies != 1 {
				t.Errorf("task %s was archived %d times", id, copies)
			}
		}
		if n := s.world.LogLength(); n > 1 { // the last turn stays
			t.Errorf("%d messages are left in the log", n)
		}
		s.describe(o, "flood", false, 0)
		testkit.NoError(t, stop())
	})
}

// I11: a tasklist without a worker fills the window many times over, while other domains have nothing. Another of its domain goes on, also beside another
// flood and under the next owner; and when a worker comes, each of its tasks is run once, and nothing is left in the log.
func TestI11_ATasklistWithoutAWorkerHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTenants(t)
		_, stop := s.owner()
		s.serve("shop.mail")
		var bulk []ids.TaskID
		for range 30 {
			bulk = append(bulk, s.submitAt("shop.bulk", "shop.bulk", 4)...)
		}
		s.end("behind a tasklist", s.submitAt("shop.mail", "shop.mail", 1))
		var flood []ids.TaskID
		for range 10 {
			flood = append(flood, s.submit("flood", 4)...)
		}
		s.end("beside a flood", s.submitAt("shop.mail", "shop.mail", 1))
		time.Sleep(time.Minute)
		testkit.NoError(t, stop())

		o, stop := s.owner()
		s.end("after a takeover", s.submitAt("shop.mail", "shop.mail", 1))
		s.serve("shop.bulk")
		s.serve("flood")
		o.Reconnected(t.Context()) // what is ready is triggered again
		s.end("both", append(bulk, flood...))
		time.Sleep(time.Minute)
		for id, copies := range s.archived() {
			if copies != 1 {
				t.Errorf("task %s was archived %d times", id, copies)
			}
		}
		if n := s.world.LogLength(); n > 1 { // the last turn stays
			t.Errorf("%d messages are left in the log", n)
		}
		s.describe(o, "shop", false, 0)
		testkit.NoError(t, stop())
	})
}

// slowArchive files only while it is open.
type slowArchive struct {
	partition.Archive
	open atomic.Pointer[chan struct{}]
}

func (a *slowArchive) File(ctx context.Context, tasks []*taskstate.Task, last uint64) (uint64, error) {
	if open := a.open.Load(); open != nil {
		<-*open
	}
	return a.Archive.File(ctx, tasks, last)
}

// I1: the lane's reader hands over a message of a domain that lags, not decoded. The lease does not hold, so it is offered again
// later; meanwhile the last task of the domain is stored, and the lag ends. Then the message has to be decoded.
func TestI1_WhatIsOfferedAgainMayLagNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTenants(t)
		d := s.deps("n")
		d.Config.WindowTasks = 10
		checkpoints, archive := &brokenCheckpoints{Checkpoints: s.world}, &slowArchive{Archive: s.archive}
		d.Checkpoints, d.Archive = checkpoints, archive
		o := s.serves(d)
		s.serve("shop")
		flood := s.submit("flood", 12)
		s.end("behind a flood", s.submit("shop", 1))
		s.describe(o, "flood", true, 0)

		last := flood[len(flood)-1]
		s.servedBy(last, "nobody")
		s.serve("flood")
		o.Reconnected(t.Context())
		s.end("all but one", flood[:len(flood)-1])
		open := make(chan struct{})
		archive.open.Store(&open)
		s.servedBy(last, "flood")
		o.Reconnected(t.Context())
		time.Sleep(2 * time.Second) // the last one has ended, and is being stored
		checkpoints.broken.Store(true)
		time.Sleep(2 * replica.LeaseFor)
		flood = append(flood, s.submit("flood", 1)...)
		time.Sleep(time.Second)
		close(open)
		time.Sleep(time.Second)
		checkpoints.broken.Store(false)
		s.end("the flood", flood)
	})
}

// busyLog gets a message of the flood whenever it has counted.
type busyLog struct {
	partition.Log
	submit func()
}

func (l *busyLog) Backlog(ctx context.Context, of replica.Queue, read uint64) (uint64, error) {
	n, err := l.Log.Backlog(ctx, of, read)
	l.submit()
	return n, err
}

// I11: a flood that goes on while it is counted hides no one who waits behind it.
func TestI11_WhoGoesOnFloodingHidesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTenants(t)
		d := s.deps("n")
		d.Config.WindowTasks = 10
		d.Log = &busyLog{Log: s.world, submit: func() { s.submit("flood", 1) }}
		s.serves(d)
		s.serve("shop")
		s.submit("flood", 12)
		s.end("behind a flood", s.submit("shop", 1))
	})
}

// uncountedLog does not answer how much waits of the flood once it is split off.
type uncountedLog struct {
	partition.Log
	counts atomic.Int64
}

func (l *uncountedLog) Backlog(ctx context.Context, of replica.Queue, read uint64) (uint64, error) {
	if of.Place == "flood" && l.counts.Add(1) > 2 {
		return 0, errors.New("no answer")
	}
	return l.Log.Backlog(ctx, of, read)
}

// I1: a domain that goes back into its lane before it was read or counted by itself is read on.
func TestI1_WhatWasNotCountedIsReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTenants(t)
		d := s.deps("n")
		d.Config.WindowTasks = 10
		d.Log = &uncountedLog{Log: s.world}
		o := s.serves(d)
		s.serve("shop")
		flood := s.submit("flood", 12)
		s.end("behind a flood", s.submit("shop", 1))
		time.Sleep(110 * time.Millisecond) // between two beats
		s.serve("flood")
		o.Reconnected(t.Context()) // what is ready is triggered again
		s.end("the flood", flood)
		s.end("after the flood", s.submit("flood", 1))
	})
}

// halfCountedLog has no answer to every second count of the flood.
type halfCountedLog struct {
	partition.Log
	counts atomic.Int64
}

func (l *halfCountedLog) Backlog(ctx context.Context, of replica.Queue, read uint64) (uint64, error) {
	if of.Place == "flood" && l.counts.Add(1)%2 == 0 {
		return 0, errors.New("no answer")
	}
	return l.Log.Backlog(ctx, of, read)
}

// A domain that waits for itself alone is not split off, however often that is counted; nor is one of which a count failed.
func TestADomainThatHoldsUpNobodyIsNotSplitOff(t *testing.T) {
	for name, logOf := range map[string]func(partition.Log) partition.Log{
		"counted": func(l partition.Log) partition.Log { return l },
		"failed":  func(l partition.Log) partition.Log { return &halfCountedLog{Log: l} },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newTenants(t)
			d := s.deps("n")
			d.Config.WindowTasks = 10
			d.Log = logOf(s.world)
			var most atomic.Int64
			d.Report = func(r *gauges.Report) {
				for _, l := range r.Lanes {
					most.Store(max(most.Load(), int64(l.Domains+l.Tasklists)))
				}
			}
			s.serves(d)
			s.submit("flood", 12)
			s.submit("flood", 1)
			time.Sleep(30 * time.Second)
			testkit.Equal(t, name+": queues", most.Load(), 0)
		})
	}
}

// watchedLog counts the readers of queues, and fails to forget so many times.
type watchedLog struct {
	partition.Log
	readers, fails atomic.Int64
}

func (l *watchedLog) Read(ctx context.Context, s partition.Source, at ids.Place, from, upTo uint64, handle func(partition.Record) error) error {
	if at != "" && upTo == 0 {
		l.readers.Add(1)
		defer l.readers.Add(-1)
	}
	return l.Log.Read(ctx, s, at, from, upTo, handle)
}

func (l *watchedLog) Forget(ctx context.Context, levels replica.Levels) error {
	if l.fails.Add(-1) >= 0 {
		return errors.New("no quorum")
	}
	return l.Log.Forget(ctx, levels)
}

// TestI7_WhatLagsIsReadAsFarAsItHasRoom, and no reader is kept that has none, nor one of a domain that lags no more. What the
// log could not forget then, it forgets later, though nothing happens any more.
func TestI7_WhatLagsIsReadAsFarAsItHasRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTenants(t)
		d := s.deps("n")
		d.Config.WindowTasks, d.Config.PurgeEvery = 10, 10*time.Second
		log := &watchedLog{Log: s.world}
		d.Log = log
		o := s.serves(d)
		s.serve("shop")
		flood := append(s.submit("flood", 4), s.submit("flood", 4)...) // room for a third message is left
		other := s.submit("other", 4)
		for range 30 {
			flood = append(flood, s.submit("flood", 4)...)
		}
		s.end("behind a flood", s.submit("shop", 1))
		time.Sleep(time.Minute)
		s.describe(o, "flood", true, 20)
		if n := log.readers.Load(); n > 0 {
			t.Errorf("%d readers wait for room", n)
		}
		log.fails.Store(1 << 30)
		s.serve("flood")
		s.serve("other")
		o.Reconnected(t.Context())
		s.end("the flood", append(flood, other...))
		time.Sleep(time.Minute)
		if n := log.readers.Load(); n > 0 {
			t.Errorf("%d readers are left", n)
		}
		log.fails.Store(0)
		time.Sleep(time.Minute)
		if n := s.world.LogLength(); n > 1 { // the last turn stays
			t.Errorf("%d messages are left in the log", n)
		}
	})
}

// TestI14_AFloodPutsOffNobodysCancel: a domain without a worker fills a lane, and no message of others waits behind it. Another domain cancels a dead
// task of its own.
func TestI14_AFloodPutsOffNobodysCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTenants(t)
		s.shell.worker = nil
		s.works(logv1.EventKind_EVENT_KIND_FAILED)
		_, stop := s.owner()
		id := s.submit("shop", 1)[0]
		time.Sleep(time.Minute) // it is dead
		s.mu.Lock()
		s.shell.worker = nil
		s.mu.Unlock()
		if len(s.world.DeadTasks()) != 1 {
			t.Fatal("it is no dead letter")
		}
		for range 30 {
			s.submit("flood", 4)
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		before := len(s.verdicts)
		s.mu.Unlock()
		s.cancels("shop", id)
		time.Sleep(time.Hour)
		s.mu.Lock()
		said := s.verdicts[before:]
		if len(said) != 1 || said[0].Code != string(fault.FailedPrecondition) {
			t.Errorf("after an hour the cancel of a dead letter has %v", said)
		}
		s.mu.Unlock()
		_ = stop()
	})
}

// I1: a domain goes back into its lane while messages of it are on their way that were not decoded: the lane is read again from there.
func TestI1_WhatWasPassedOverIsReadAgain(t *testing.T) {
	for gap := range 26 {
		synctest.Test(t, func(t *testing.T) {
			s := newTenants(t)
			d := s.deps("n")
			d.Config.WindowTasks = 10
			o := s.serves(d)
			s.serve("shop")
			flood := s.submit("flood", 12)
			s.end("behind a flood", s.submit("shop", 1))
			time.Sleep(time.Duration(gap) * 10 * time.Millisecond)
			other := s.submit("other", 12)
			s.serve("flood")
			flood = append(flood, s.submit("flood", 1)...)
			flood = append(flood, s.submit("flood", 1)...)
			o.Reconnected(t.Context())
			time.Sleep(500 * time.Millisecond)
			s.serve("other")
			o.Reconnected(t.Context())
			s.end("the flood", flood)
			s.end("the other", other)
		})
	}
}
