package partition_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// watchedReader takes a second for what is asked of the archive, and notes what is asked.
type watchedReader struct {
	partition.Reader

	mu     sync.Mutex
	jobs   [][]replica.Search
	unread int
}

func (r *watchedReader) Archived(ctx context.Context, wanted []replica.Search) ([]*logv1.Record, error) {
	r.mu.Lock()
	r.jobs = append(r.jobs, wanted)
	r.mu.Unlock()
	time.Sleep(time.Second)
	return r.Reader.Archived(ctx, wanted)
}

func (r *watchedReader) Unread(ctx context.Context, wanted replica.Search, hint uint64, read replica.Levels) (*logv1.Record, ids.Position, error) {
	r.mu.Lock()
	r.unread++
	r.mu.Unlock()
	return r.Reader.Unread(ctx, wanted, hint, read)
}

func (s *shell) cancels(domain string, all ...ids.TaskID) {
	for some := range slices.Chunk(all, 1000) {
		b := &logv1.EventBatch{ReplyTo: "asker"}
		for _, id := range some {
			b.Events = append(b.Events, &logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: id[:], Domain: domain})
		}
		data, err := b.MarshalVT()
		testkit.Check(s.t, err)
		s.world.SendEvents(data)
	}
}

// I14: a domain cancels eight thousand tasks that are nowhere. Another's cancel is looked for
// in its turn, not behind all of them. And the log is not read for tasks that cannot lie there,
// since every lane is read to its end.
func TestI14_ACancelIsNotHeldUpByAnotherDomainsSearches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		r := &watchedReader{Reader: d.Reader}
		d.Reader = r
		s.serves(d)
		s.submit(3, task(newID(1), "shop"))
		time.Sleep(time.Second) // it is read
		const flood = 8_000
		absent := make([]ids.TaskID, flood)
		for i := range absent {
			absent[i] = newID(uint64(i) + 1000)
		}
		s.cancels("flood", absent...)
		time.Sleep(100 * time.Millisecond) // as many jobs as may are under way
		mine := newID(2)
		s.cancels("shop", mine)
		time.Sleep(5 * time.Minute)
		r.mu.Lock()
		defer r.mu.Unlock()
		at := slices.IndexFunc(r.jobs, func(job []replica.Search) bool {
			return slices.ContainsFunc(job, func(s replica.Search) bool { return s.ID == mine })
		})
		if at < 0 || at > 8 {
			t.Errorf("looked for in job %d of %d", at, len(r.jobs))
		}
		testkit.Equal(t, "the log was read times", r.unread, 0)
		s.mu.Lock()
		defer s.mu.Unlock()
		testkit.Equal(t, "verdicts", len(s.verdicts), flood+1)
	})
}

// forgetfulTimer fires a task as it is asked for it, and says that it knows of none.
type forgetfulTimer struct {
	partition.Timer
	fire func()
}

func (t forgetfulTimer) FireEarly(context.Context, []replica.Search) (partition.Early, error) {
	t.fire()
	return partition.Early{}, nil
}

// heldLane hands out nothing of the lane of delayed tasks until it is let.
type heldLane struct {
	partition.Log
	let chan struct{}
}

func (l heldLane) Read(ctx context.Context, s partition.Source, at ids.Place, from, upTo uint64, handle func(partition.Record) error) error {
	if s == partition.Source(ids.LaneLater) {
		select {
		case <-l.let:
		case <-ctx.Done():
			return nil
		}
	}
	return l.Log.Read(ctx, s, at, from, upTo, handle)
}

// TestACommandWaitsForWhatTheTimerHasJustFired: the lanes end where they do after the timer was asked. Before that the task was in no lane.
func TestACommandWaitsForWhatTheTimerHasJustFired(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		let := make(chan struct{})
		id := newID(1)
		back := task(id, "shop")
		back.Parkings, back.Position = 1, uint64(ids.NewPosition(1, 3))
		fire := sync.OnceFunc(func() { s.world.AppendSubmit(ids.LaneLater, encoded(t, &logv1.Batch{Tasks: []*logv1.Record{back}})) })
		d.Log, d.Timer = heldLane{d.Log, let}, forgetfulTimer{d.Timer, fire}
		s.submit(3, task(newID(2), "shop")) // where the stay before lay
		s.serves(d)
		s.cancels("shop", id)
		time.Sleep(5 * time.Second)
		close(let)
		time.Sleep(5 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.verdicts) != 1 || s.verdicts[0].Code != "" {
			t.Errorf("answered %v", s.verdicts)
		}
		testkit.Equal(t, "times archived", s.archived()[id], 1)
	})
}

// lateTimer says that a task comes, and fires it later.
type lateTimer struct {
	partition.Timer
	fire func()
}

func (t lateTimer) FireEarly(_ context.Context, wanted []replica.Search) (partition.Early, error) {
	t.fire()
	early := partition.Early{Coming: map[ids.TaskID]bool{}}
	for _, one := range wanted {
		early.Coming[one.ID] = true
	}
	return early, nil
}

// TestL3_ACommandWaitsForWhatTheTimerIsToFire, also if that takes long: only the timer takes a task out of its store.
func TestL3_ACommandWaitsForWhatTheTimerIsToFire(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d, id := s.deps("a"), newID(1)
		back := task(id, "shop")
		back.Parkings, back.Position = 1, uint64(ids.NewPosition(1, 3))
		d.Timer = lateTimer{d.Timer, sync.OnceFunc(func() {
			time.AfterFunc(30*time.Second, func() { s.world.AppendSubmit(ids.LaneLater, encoded(t, &logv1.Batch{Tasks: []*logv1.Record{back}})) })
		})}
		s.submit(3, task(newID(2), "shop")) // where the stay before lay
		s.serves(d)
		s.cancels("shop", id)
		time.Sleep(2 * time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.verdicts) != 1 || s.verdicts[0].Code != "" {
			t.Errorf("answered %v", s.verdicts)
		}
		testkit.Equal(t, "times archived", s.archived()[id], 1)
	})
}

// laterLog says that lane 3 ends behind what is in it.
type laterLog struct {
	partition.Log
	later uint64
}

func (l laterLog) Ends(ctx context.Context) (uint64, [partition.Sources]uint64, error) {
	last, of, err := l.Log.Ends(ctx)
	of[3] += l.later
	return last, of, err
}

// TestADeadTaskIsNotSureBeforeItsLaneIsRead: it may have been redriven and fired, and lie there, where no search finds it, since the timer forgets.
func TestADeadTaskIsNotSureBeforeItsLaneIsRead(t *testing.T) {
	for later, want := range map[uint64]int{0: 1, 100: 0} {
		inBubble(t, func(t *testing.T, s *shell) {
			s.works(logv1.EventKind_EVENT_KIND_FAILED)
			d := s.deps("a")
			_, stop := ready(d)
			id := newID(1)
			s.submit(3, task(id, "shop"))
			time.Sleep(time.Minute) // it is dead
			testkit.NoError(t, stop())
			d.Node, d.Log = "b", laterLog{d.Log, later}
			s.serves(d)
			before := len(s.verdicts)
			s.cancels("shop", id)
			time.Sleep(time.Minute)
			s.mu.Lock()
			defer s.mu.Unlock()
			if said := s.verdicts[before:]; len(said) != want || want == 1 && said[0].Code != string(fault.FailedPrecondition) {
				t.Errorf("the lane ends %d later: %v", later, said)
			}
		})
	}
}
