package batches

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// memory is a store of batches whose tasks lie in two partitions. It notes what was asked of it.
type memory struct {
	homes map[string]*logv1.BatchHome
	// tasks and ends are those of all batches, by partition.
	tasks [2]int64
	ends  [2]batch.Ends
	// backlog: tasks wait on disk that are not counted so far. away is why nothing is counted.
	backlog bool
	away    error
	// then happens at each call, before it, and may have it fail.
	then func(call string) error

	feed chan batch.Home

	mu    sync.Mutex // looks go on beside each other
	calls []string
	over  []*logv1.BatchHome
	back  []*logv1.Record
}

func (m *memory) call(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	m.mu.Lock()
	m.calls = append(m.calls, call)
	m.mu.Unlock()
	if m.then == nil {
		return nil
	}
	return m.then(call)
}

func (m *memory) Follow(ctx context.Context, handle func(batch.Home) error) error {
	for {
		select {
		case h := <-m.feed:
			if err := handle(h); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *memory) Load(_ context.Context, name batch.Name) (*Loaded, error) {
	err := m.call("load %s", name.ID)
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.homes[name.ID]; h != nil && err == nil {
		return &Loaded{Domain: name.Domain, Seq: 1, Home: h.CloneVT()}, nil
	}
	return nil, err
}

func (m *memory) Close(_ context.Context, _ batch.Name, partition int) error {
	return m.call("close %d", partition)
}

func (m *memory) Count(_ context.Context, _ batch.Name, partition int, counted bool) (batch.Tally, bool, error) {
	err := m.call("count %d", partition)
	m.mu.Lock()
	defer m.mu.Unlock()
	if counted && m.backlog {
		err = errors.New("it was not counted")
	}
	return batch.Tally{Tasks: m.tasks[partition], Ends: m.ends[partition]}, !m.backlog, cmp.Or(m.away, err)
}

func (m *memory) End(_ context.Context, was *Loaded, over *logv1.BatchHome, callback *logv1.Record) error {
	if err := m.call("end %s", was.Home.BatchId); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.homes[over.BatchId] = over
	m.over, m.back = append(m.over, over), append(m.back, callback)
	return nil
}

func (m *memory) Forget(_ context.Context, _ batch.Name, partition int) error {
	return m.call("forget %d", partition)
}

var night = batch.Name{Domain: "shop", ID: "night", Made: 1}

// home is the batch night, closed or not, which expires in a day.
func home(closed bool) *logv1.BatchHome {
	h := &logv1.BatchHome{
		BatchId: night.ID, CreatedAtMs: night.Made, ExpiresAtMs: time.Now().Add(24 * time.Hour).UnixMilli(),
		Callback: &logv1.Record{Type: "report", Tasklist: "mail", Payload: []byte("secret"), Headers: []*logv1.Header{{Name: "zone", Value: "a"}, {Name: "app", Value: "b"}}},
	}
	if closed {
		h.ClosedAtMs = time.Now().UnixMilli()
	}
	return h
}

// kept runs a keeper of the batches of a store, until the test ends. Its store is touched while it waits only.
func kept(t *testing.T, m *memory, play func(hint func(batch.Name))) {
	synctest.Test(t, func(t *testing.T) {
		m.feed = make(chan batch.Home, 100)
		m.homes = map[string]*logv1.BatchHome{}
		hints := make(chan batch.Name, 10)
		k := New(Deps{
			Partition: 1, Partitions: 2, Store: m, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Hints: func(ctx context.Context, hint func(batch.Name)) error {
				for {
					select {
					case n := <-hints:
						hint(n)
					case <-ctx.Done():
						return nil
					}
				}
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- k.Run(ctx) }()
		synctest.Wait()
		play(func(n batch.Name) {
			hints <- n
			synctest.Wait()
		})
		stop()
		testkit.Check(t, <-ended)
	})
}

// says has the log say of a batch what the store has.
func (m *memory) says(h *logv1.BatchHome) {
	m.mu.Lock()
	m.homes[h.BatchId] = h
	m.mu.Unlock()
	m.feed <- HomeOf(night.Domain, h)
	synctest.Wait()
}

// took returns what was asked of the store, and forgets it.
func (m *memory) took() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.calls { // partitions are counted at once
		for k := i; k > 0 && strings.HasPrefix(m.calls[k], "count") && strings.HasPrefix(m.calls[k-1], "count") && m.calls[k] < m.calls[k-1]; k-- {
			m.calls[k], m.calls[k-1] = m.calls[k-1], m.calls[k]
		}
	}
	all := strings.Join(m.calls, ", ")
	m.calls = nil
	return all
}

// TestABatchEnds when all of its tasks have: each partition is closed before it is counted, and counted again before the end is stored; then each may forget it.
func TestABatchEnds(t *testing.T) {
	m := &memory{tasks: [2]int64{2, 1}, ends: [2]batch.Ends{{Completed: 1}, {Dead: 1}}}
	kept(t, m, func(hint func(batch.Name)) {
		m.says(home(true))
		testkit.Equal(t, "the first look", m.took(), "load night, close 0, close 1, count 0, count 1")
		m.ends = [2]batch.Ends{{Completed: 1, Expired: 1}, {Cancelled: 1}} // the dead one was redriven meanwhile
		time.Sleep(time.Second)
		hint(night)
		testkit.Equal(t, "the last look", m.took(), "load night, count 0, count 0, count 1, end night, forget 0, forget 1")
		now := time.Now().UnixMilli()
		over, task := m.over[0], m.back[0]
		if over.Tasks != 3 || over.EndedAtMs != now || over.ClosedAtMs == now || over.Expired || over.Ends.Completed != 1 || over.Ends.Expired != 1 || over.Ends.Cancelled != 1 || over.Ends.Dead != 0 {
			t.Errorf("it is over with %+v", over)
		}
		if c := over.Callback; c.Type != "report" || c.Tasklist != "mail" || c.Payload != nil || len(c.Headers) != 0 {
			t.Errorf("of its callback stays %+v", c)
		}
		id := ids.TaskID(task.Id)
		if id.Partition() != 1 || id.Time().UnixMilli() != now || !slices.Equal(over.CallbackTaskId, task.Id) || string(task.Payload) != "secret" {
			t.Errorf("its callback is %s, noted as %x", id, over.CallbackTaskId)
		}
		var headers []string
		for _, h := range task.Headers {
			headers = append(headers, h.Name+"="+h.Value)
		}
		if got, want := strings.Join(headers, " "), "app=b yard-batch-cancelled=1 yard-batch-completed=1 yard-batch-dead=0 yard-batch-expired=1 yard-batch-id=night yard-batch-tasks=3 zone=a"; got != want {
			t.Errorf("headers %s, want %s", got, want)
		}
		m.says(over)
		time.Sleep(time.Hour)
		hint(night)
		testkit.Equal(t, "afterwards", m.took(), "")
	})
}

// TestABatchWhoseTimeIsOver ends as it is, closed or not, without its callback. It is closed everywhere before.
func TestABatchWhoseTimeIsOver(t *testing.T) {
	for _, closed := range []bool{false, true} {
		m := &memory{tasks: [2]int64{2, 1}, ends: [2]batch.Ends{{Completed: 1}, {}}}
		kept(t, m, func(func(batch.Name)) {
			m.says(home(closed))
			synctest.Wait()
			if got := m.took(); closed == (got == "") {
				t.Errorf("closed %v, when it is made: %s", closed, got)
			}
			time.Sleep(25 * time.Hour)
			synctest.Wait()
			testkit.MustEqual(t, fmt.Sprintf("closed %v: it has ended", closed), len(m.over), 1)
			calls := m.took()
			if over := m.over[0]; !over.Expired || m.back[0] != nil || over.CallbackTaskId != nil || over.Tasks != 3 || over.Ends.Completed != 1 || over.ClosedAtMs == 0 || closed == strings.Contains(calls, "close 1") {
				t.Errorf("closed %v: %+v with callback %v, after %s", closed, over, m.back[0], calls)
			}
		})
	}
}

// TestABatchWithoutACallback ends without one.
func TestABatchWithoutACallback(t *testing.T) {
	m := new(memory)
	kept(t, m, func(func(batch.Name)) {
		h := home(true)
		h.Callback = nil
		m.says(h)
		if len(m.over) != 1 || m.back[0] != nil || m.over[0].Callback != nil {
			t.Errorf("it is over with %+v", m.over)
		}
	})
}

// TestALookThatFails is repeated with what it has found out: what is closed stays closed. One that finds another's change looks again, and one that finds nothing
// forgets the batch.
func TestALookThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		fails  string
		err    error
		before string
		after  string
	}{
		"the log is away":     {"load night", errors.New("away"), "load night", "load night, close 0, close 1, count 0, count 0, count 1, count 1, end night, forget 0, forget 1"},
		"closing fails":       {"close 1", errors.New("away"), "load night, close 0, close 1", "load night, close 0, close 1, count 0, count 0, count 1, count 1, end night, forget 0, forget 1"},
		"counting fails":      {"count 1", errors.New("away"), "load night, close 0, close 1, count 0, count 1", "load night, count 0, count 1, count 1, end night, forget 0, forget 1"},
		"another changed it":  {"end night", ErrMoved, "load night, close 0, close 1, count 0, count 0, count 1, count 1, end night", "load night, count 0, count 1, end night, forget 0, forget 1"},
		"it may stay a while": {"forget 0", errors.New("away"), "load night, close 0, close 1, count 0, count 0, count 1, count 1, end night, forget 0, forget 1", "load night"},
	} {
		m := new(memory)
		failed := false
		m.then = func(call string) error {
			if call == c.fails && !failed {
				failed = true
				return c.err
			}
			return nil
		}
		kept(t, m, func(func(batch.Name)) {
			m.says(home(true))
			testkit.Equal(t, name, m.took(), c.before)
			time.Sleep(batch.LookEveryMS * time.Millisecond)
			synctest.Wait()
			testkit.Equal(t, fmt.Sprintf("%s, again", name), m.took(), c.after)
		})
	}
	m := new(memory)
	kept(t, m, func(func(batch.Name)) {
		m.feed <- HomeOf(night.Domain, home(true))
		synctest.Wait()
		time.Sleep(time.Hour)
		synctest.Wait()
		testkit.Equal(t, "of one that the server has forgotten", m.took(), "load night")
	})
}

// TestSoManyLooksAtATime and no more; when one ends the next begins.
func TestSoManyLooksAtATime(t *testing.T) {
	m := new(memory)
	kept(t, m, func(func(batch.Name)) {
		held, looks := make(chan struct{}), make(chan string, 100)
		m.then = func(call string) error {
			if strings.HasPrefix(call, "load") {
				looks <- call
				<-held
			}
			return nil
		}
		for n := range looksMax + 3 {
			h := home(true)
			h.BatchId = fmt.Sprint(n)
			m.feed <- HomeOf(night.Domain, h)
		}
		synctest.Wait()
		testkit.Equal(t, "looks", len(looks), looksMax)
		held <- struct{}{}
		synctest.Wait()
		testkit.Equal(t, "looks when one has ended", len(looks), looksMax+1)
		close(held)
		synctest.Wait()
		testkit.Equal(t, "looks in all", len(looks), looksMax+3)
	})
}

// TestAKeeperEndsWithItsLog: what that holds cannot be read.
func TestAKeeperEndsWithItsLog(t *testing.T) {
	for _, hints := range []bool{false, true} {
		broken := errors.New("of a version that is not known")
		d := Deps{Partitions: 1, Store: &brokenLog{err: broken}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
		if hints {
			d.Store = &memory{}
			d.Hints = func(context.Context, func(batch.Name)) error { return broken }
		}
		if err := New(d).Run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("hints %v: %v", hints, err)
		}
	}
}

// brokenLog cannot be followed.
type brokenLog struct {
	memory
	err error
}

func (b *brokenLog) Follow(context.Context, func(batch.Home) error) error { return b.err }

// TestAnOpenBatchIsNotClosed by a look: tasks may join it as long as it has time.
func TestAnOpenBatchIsNotClosed(t *testing.T) {
	m := &memory{homes: map[string]*logv1.BatchHome{}}
	k := New(Deps{Partitions: 2, Store: m, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if _, err := k.carry(t.Context(), night, &Loaded{Domain: night.Domain, Home: home(false)}, nil); err != nil || m.took() != "" {
		t.Errorf("%v, it has ended %d times", err, len(m.over))
	}
}

// after changes the store, if change is not nil, lets a minute pass, and returns the batches that are over then.
func (m *memory) after(change func()) []*logv1.BatchHome {
	if change != nil {
		m.mu.Lock()
		change()
		m.mu.Unlock()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.over)
}

// TestABatchWithABacklogGoesOn: tasks that wait on disk are not counted so far, so it is not over though all that are counted have ended.
func TestABatchWithABacklogGoesOn(t *testing.T) {
	m := &memory{tasks: [2]int64{1, 1}, ends: [2]batch.Ends{{Completed: 1}, {Completed: 1}}, backlog: true}
	kept(t, m, func(func(batch.Name)) {
		m.says(home(true))
		testkit.Equal(t, "batches are over", len(m.after(nil)), 0)
		over := m.after(func() { m.backlog, m.away = false, errors.New("its owner is away") })
		testkit.Equal(t, "batches are over without a count", len(over), 0)
		over = m.after(func() { m.tasks[0], m.away = 2, nil })
		testkit.Equal(t, "batches are over with a task that runs", len(over), 0)
		if over = m.after(func() { m.ends[0].Dead = 1 }); len(over) != 1 || over[0].Tasks != 3 {
			t.Errorf("it is over with %v", over)
		}
	})
}

// TestMembersAreKeptAsLongAsTheirBatch can be.
func TestMembersAreKeptAsLongAsTheirBatch(t *testing.T) {
	testkit.Equal(t, "ms", int64(batch.LifeMS), topology.BatchLifeMax.Milliseconds())
}

// lostAck stores the end, and loses the answer.
type lostAck struct{ *memory }

func (m lostAck) End(ctx context.Context, was *Loaded, over *logv1.BatchHome, callback *logv1.Record) error {
	return errors.Join(m.memory.End(ctx, was, over, callback), errors.New("the outcome is unknown"))
}

// TestABatchWhoseEndIsNotAcknowledgedIsForgotten in each partition: no one looks at it again.
func TestABatchWhoseEndIsNotAcknowledgedIsForgotten(t *testing.T) {
	m := &memory{homes: map[string]*logv1.BatchHome{night.ID: home(true)}}
	k := New(Deps{Partitions: 2, Store: lostAck{m}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	_, err := k.carry(t.Context(), night, &Loaded{Domain: night.Domain, Home: home(true)}, nil)
	if calls := m.took(); err == nil || !strings.HasSuffix(calls, "end night, load night, forget 0, forget 1") {
		t.Errorf("%v, after %s", err, calls)
	}
}
