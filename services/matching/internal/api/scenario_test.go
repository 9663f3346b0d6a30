package api_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var errAway = errors.New("away")

// awayTables are tables that can be away, all of them or one domain's.
type awayTables struct {
	tables.Tables
	mu sync.Mutex
	// down: every call fails.
	down bool
	// hung is a domain, of a group of its own, whose calls last until free is closed.
	hung string
	free chan struct{}
}

func (a *awayTables) set(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

func (a *awayTables) try(domain string) error {
	if domain == a.hung {
		<-a.free
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return errAway
	}
	return nil
}

func (a *awayTables) Group(domain string) string {
	if domain == a.hung {
		return "hung"
	}
	return ""
}

func (a *awayTables) Open(ctx context.Context, domain string) (table.Opened, error) {
	if err := a.try(domain); err != nil {
		return table.Opened{}, err
	}
	return a.Tables.Open(ctx, domain)
}

func (a *awayTables) Do(ctx context.Context, calls []table.Call) ([]table.Outcome, []error) {
	if err := a.try(calls[0].Domain); err != nil {
		errs := make([]error, len(calls))
		for i := range errs {
			errs[i] = err
		}
		return make([]table.Outcome, len(calls)), errs
	}
	return a.Tables.Do(ctx, calls)
}

// away has the stack's tables be such ones.
func (s *stack) away() *awayTables {
	a := &awayTables{Tables: s.store.Shard(0), free: make(chan struct{})}
	s.tables = func() tables.Tables { return a }
	return a
}

// While one group of tables hangs forever, the domains of others are served, limited types
// and backlogs too.
func TestR8_HungTablesHoldUpNoOtherDomain(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.limits.set("pay", 1)
	a := s.away()
	a.hung = "elsewhere"
	s.start()
	t.Cleanup(func() { close(a.free) }) // before the owner's, which waits for the calls
	s.send(1, time.Hour, func(p *rpcv1.Poll) { p.Domain = "elsewhere" })
	s.history.submit("pay", 3, 3)
	s.awaitReady(3)
	for range 3 {
		s.history.complete(s.poll(1))
	}
}

// R35: hints that find neither poll nor table do not fill what the stream may have under way, so unlimited types
// go on meeting polls however many there are, and nothing is lost when the tables return.
func TestR35_UnlimitedTypesGoOnWithoutTables(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.limits.set("pay", 2)
	a := s.away()
	s.start()
	a.set(true)
	const others = 1500
	for i := range others { // single tasks of a tasklist that no one polls just now
		s.publish(topology.Matching(0), &logv1.Hints{Triggers: []*logv1.TriggerBatch{{
			Domain: domain, Tasklist: "nobody", Type: "x", Priority: 3, ReadyAtUs: int64(i + 1),
			Triggers: ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(5), 0, uint64(i)), Version: 1}),
		}}})
	}
	s.history.submit("pay", 1, 2)
	waiting := s.send(1, patience, func(p *rpcv1.Poll) { p.Types = []string{"free"} })
	s.awaitPolls(1)
	s.history.submit("free", 3, 1)
	if got := waiting.tasks(); len(got) != 1 {
		t.Fatalf("beside %d hints of others came %v", others, got)
	}
	a.set(false)
	s.history.complete(s.poll(2)) // asked for again
}

// R41: the owner is killed between history's grant and its answer. The worker, who still waits in
// the same inbox, gets the task from the next owner; no attempt is lost.
func TestR41_KilledBeforeItAnswered(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for what is lost to be noticed")
	s := newStack(t)
	s.limits.set("pay", 1)
	first := s.start()
	s.history.mu.Lock()
	s.history.mute = true
	s.history.mu.Unlock()
	waiting := s.send(3, time.Hour, nil)
	s.awaitPolls(1)
	made := s.history.submit("pay", 3, 2)
	s.await(func() error {
		if n := s.history.count(func() int { return len(s.history.grants) }); n != 1 {
			return fmt.Errorf("%d grants", n)
		}
		return nil
	})
	first.kill()
	s.history.mu.Lock()
	s.history.mute = false
	s.history.mu.Unlock()
	s.start()
	got := waiting.tasks()
	if len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	// It holds its slot: the other one waits until it is done.
	if d, err := s.describe(); err != nil || d.Slots["pay"] > 1 {
		t.Fatalf("%v %v", d, err)
	}
	s.history.complete(got)
	s.history.complete(s.poll(1))
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	if len(s.history.tasks) != 0 || s.history.most["pay"] != 1 || s.history.redelivered != 1 {
		t.Errorf("of %v are left %v; %d ran at once, %d were sent again", made, s.history.tasks, s.history.most["pay"], s.history.redelivered)
	}
}

// I4, I8: one shard is served by owner after owner, none of which knows the next: each learns it by its
// fences. Meanwhile the tables lose their memory. No limit is exceeded and no task is done twice.
func TestI4I8_OwnersFenceEachOther(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for what is lost to be noticed")
	s := newStack(t)
	s.limits.set("pay", 3)
	owners := []*owner{s.start()}
	const tasks = 500
	for range tasks / 25 {
		s.history.submit("pay", 2, 5)
		s.history.submit("free", 3, 20)
	}
	next := make(chan struct{}, tasks)
	s.history.mu.Lock()
	s.history.onDone = func(left int) {
		switch left {
		case 400, 300, 100:
			next <- struct{}{}
		case 200:
			s.store.Forget()
		}
	}
	s.history.mu.Unlock()
	var working sync.WaitGroup
	working.Go(func() { s.drainWith(8, tasks) })
	for range 3 {
		select {
		case <-next:
			owners = append(owners, s.start())
		case <-time.After(4 * patience):
			t.Error("the tasks are not done")
		}
	}
	working.Wait()
	if most := s.history.count(func() int { return s.history.most["pay"] }); most > 3 {
		t.Errorf("%d of a limit of 3 ran at once", most)
	}
	for _, o := range owners[:len(owners)-1] {
		if <-o.done; !errors.Is(o.err, shard.ErrOvertaken) {
			t.Errorf("the owner of epoch %d ended with %v", o.epoch, o.err)
		}
	}
}
