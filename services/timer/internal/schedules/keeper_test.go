package schedules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/runs"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// log is a history log of schedules, and what knows of their tasks.
type log struct {
	mu    sync.Mutex
	seq   uint64
	homes map[Name]Loaded
	// tasks are those that were submitted, with the time of their run; ended are those that have ended.
	tasks     []*logv1.Record
	ended     map[ids.TaskID]bool
	cancelled []ids.TaskID
	followers map[chan change]bool
	// fails decides about a write: not stored, or stored and not known to be.
	fails func() (before, behind bool)
	// full is why there is no room.
	full string
}

func newLog() *log {
	return &log{homes: map[Name]Loaded{}, ended: map[ids.TaskID]bool{}, followers: map[chan change]bool{}}
}

func (l *log) Follow(ctx context.Context, handle func(Name, Loaded) error) error {
	l.mu.Lock()
	news := make(chan change, 10_000)
	for n, h := range l.homes {
		news <- change{n, h}
	}
	l.followers[news] = true
	l.mu.Unlock()
	for {
		select {
		case c := <-news:
			if err := handle(c.name, c.Loaded); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *log) Load(_ context.Context, n Name) (*Loaded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.homes[n]
	if !ok {
		return nil, nil
	}
	return &Loaded{h.Seq, h.Home.CloneVT()}, nil
}

func (l *log) Change(_ context.Context, n Name, was uint64, home *logv1.ScheduleHome, tasks []*logv1.Record) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, behind := false, false
	if l.fails != nil {
		before, behind = l.fails()
	}
	if before {
		return 0, errors.New("it was not stored")
	}
	if l.homes[n].Seq != was {
		return 0, ErrChanged
	}
	seq := l.store(n, home)
	l.tasks = append(l.tasks, tasks...)
	if behind {
		return 0, errors.New("no one knows whether it was stored")
	}
	return seq, nil
}

// store stores a schedule. The caller has the lock.
func (l *log) store(n Name, home *logv1.ScheduleHome) uint64 {
	l.seq++
	l.homes[n] = Loaded{l.seq, home.CloneVT()}
	for f := range l.followers {
		f <- change{n, l.homes[n]}
	}
	return l.seq
}

func (l *log) Ended(_ context.Context, _ string, id ids.TaskID) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended[id], nil
}

func (l *log) Cancel(_ string, id ids.TaskID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelled = append(l.cancelled, id)
	return nil
}

// put stores a schedule as a frontend does.
func (l *log) put(t *testing.T, name string, change func(*yardv1.Schedule)) {
	t.Helper()
	s := &yardv1.Schedule{
		Name: name, Task: &yardv1.NewTask{Type: "report", Tasklist: "main"}, Overlap: yardv1.Overlap_OVERLAP_ALLOW, Missed: yardv1.Missed_MISSED_ALL, CatchUpMs: 3_600_000,
	}
	change(s)
	data, err := s.MarshalVT()
	testkit.NoError(t, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := Name{"shop", name}
	home := &logv1.ScheduleHome{
		Name: name, LogVersion: 1, Schedule: data, CreatedAtMs: time.Now().UnixMilli(), DecidedUpToMs: time.Now().UnixMilli(),
		Task: &logv1.Record{Domain: "shop", Type: "report", Tasklist: "main", Priority: 3, Payload: []byte(`{"at":"{{run_at}}"}`)},
	}
	if was := l.homes[n].Home; was != nil && !was.Deleted {
		home.Due, home.Running = was.Due, was.Running
	}
	l.store(n, home)
}

// edit changes a schedule as a frontend does.
func (l *log) edit(name string, change func(*logv1.ScheduleHome)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := Name{"shop", name}
	home := l.homes[n].Home.CloneVT()
	change(home)
	l.store(n, home)
}

func (l *log) isFull() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full
}

func (l *log) fill(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full = why
}

// times are those of the runs, in the order of their submits: seconds since the beginning.
func (l *log) times(since time.Time) (all []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tasks {
		for _, h := range t.Headers {
			if h.Name == "yard-run-at-ms" {
				var at int64
				_, _ = fmt.Sscan(h.Value, &at)
				all = append(all, (at-since.UnixMilli())/1000)
			}
		}
	}
	return all
}

// keep runs a keeper until stop is called.
func (l *log) keep(t *testing.T) (stop func()) { return l.keepWith(t, l) }

// keepWith runs a keeper with another view of the log.
func (l *log) keepWith(t *testing.T, view interface {
	Store
	History
},
) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	k := New(Deps{
		Partition: 1, Store: view, History: view, LogVersion: func() uint32 { return 1 }, Takes: func(*logv1.Record) bool { return l.isFull() == "" }, Now: time.Now, TraceRatio: func(string) *float64 { return nil }, Log: slog.New(slog.DiscardHandler),
		Metrics: Metrics{Started: func(int) {}, Skipped: func(int) {}, Missed: func(int) {}, Late: func(time.Duration) {}},
	})
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	return func() {
		cancel()
		testkit.NoError(t, <-ended)
	}
}

// inBubble runs a test in fake time, from a whole minute on.
func inBubble(t *testing.T, f func(t *testing.T, l *log, since time.Time)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		f(t, newLog(), time.Now())
	})
}

func everyMinute(s *yardv1.Schedule) { s.Cron = []string{"* * * * *"} }

func TestASchedulesRunsAreSubmittedOnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, l *log, since time.Time) {
		defer l.keep(t)()
		l.put(t, "minute", everyMinute)
		time.Sleep(5*time.Minute + time.Second)
		testkit.Equal(t, "runs", fmt.Sprint(l.times(since)), "[60 120 180 240 300]")
		first := l.tasks[0]
		testkit.Equal(t, "payload", string(first.Payload), `{"at":"`+since.Add(time.Minute).UTC().Format(time.RFC3339)+`"}`)
		testkit.Equal(t, "schedule", first.Headers[1].Value, "minute")
		if id := ids.TaskID(first.Id); id.Partition() != 1 || id.Time() != since.Add(time.Minute) {
			t.Errorf("the id is of partition %d and %v", id.Partition(), id.Time())
		}
		testkit.Equal(t, "counted runs", l.homes[Name{"shop", "minute"}].Home.Runs, 5)
	})
}

// TestEveryRunIsSubmittedOnce: keepers come, go and overlap, writes fail and have unknown outcomes.
func TestEveryRunIsSubmittedOnce(t *testing.T) {
	for seed := range uint64(50) {
		inBubble(t, func(t *testing.T, l *log, since time.Time) {
			r := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			l.fails = func() (bool, bool) {
				mu.Lock()
				defer mu.Unlock()
				return r.IntN(4) == 0, r.IntN(4) == 0
			}
			for _, name := range []string{"a", "b", "c"} {
				l.put(t, name, func(s *yardv1.Schedule) { s.EveryMs = 7000 })
			}
			var stops []func()
			for time.Since(since) < 10*time.Minute {
				mu.Lock()
				starts, rest := r.IntN(2) == 0, time.Duration(r.IntN(40_000))*time.Millisecond
				mu.Unlock()
				if starts && len(stops) < 3 {
					stops = append(stops, l.keep(t))
				} else if len(stops) > 0 {
					stops[0]()
					stops = stops[1:]
				}
				time.Sleep(rest)
			}
			mu.Lock()
			l.fails = nil
			mu.Unlock()
			stops = append(stops, l.keep(t))
			time.Sleep(20 * time.Second)
			for _, stop := range stops {
				stop()
			}
			got := map[int64]int{}
			for _, at := range l.times(since) {
				got[at]++
			}
			if len(got) < 80 {
				t.Errorf("seed %d: %d times", seed, len(got))
			}
			for at, n := range got {
				if n != 3 {
					t.Errorf("seed %d: %d runs of three schedules at %d", seed, n, at)
				}
			}
		})
	}
}

func TestAnEarlierRunIsCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, l *log, since time.Time) {
		defer l.keep(t)()
		l.put(t, "minute", func(s *yardv1.Schedule) {
			everyMinute(s)
			s.Overlap = yardv1.Overlap_OVERLAP_CANCEL_OTHER
		})
		time.Sleep(2*time.Minute + 500*time.Millisecond)
		testkit.Equal(t, "runs", fmt.Sprint(l.times(since)), "[60]")
		first := ids.TaskID(l.tasks[0].Id)
		if !slices.Contains(l.cancelled, first) {
			t.Error("the first run was not cancelled")
		}
		l.mu.Lock()
		l.ended[first] = true
		l.mu.Unlock()
		time.Sleep(runs.EndedEveryMS * time.Millisecond)
		testkit.Equal(t, "runs", fmt.Sprint(l.times(since)), "[60 120]")
	})
}

func TestAScheduleIsChangedWhileItRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, l *log, since time.Time) {
		defer l.keep(t)()
		l.put(t, "s", everyMinute)
		time.Sleep(90 * time.Second)
		l.put(t, "s", func(s *yardv1.Schedule) { s.EveryMs = 10_000 })
		time.Sleep(11 * time.Second)
		l.edit("s", func(h *logv1.ScheduleHome) {
			h.Due = append(h.Due, &logv1.ScheduledRun{RunAtMs: since.UnixMilli() + 77_000, StartAtMs: 1, Reason: logv1.RunReason_RUN_REASON_TRIGGER, RequestId: "x"})
		})
		time.Sleep(time.Second)
		l.edit("s", func(h *logv1.ScheduleHome) { h.Deleted = true })
		time.Sleep(time.Hour)
		testkit.Equal(t, "runs", fmt.Sprint(l.times(since)), "[60 100 77]")
	})
}

// TestRunsWaitForRoom: a full log takes no runs; those that are due come when it has room.
func TestRunsWaitForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, l *log, since time.Time) {
		defer l.keep(t)()
		l.put(t, "minute", everyMinute)
		l.fill("the disk is full")
		time.Sleep(3*time.Minute + time.Second)
		testkit.Equal(t, "runs", len(l.tasks), 0)
		l.fill("")
		time.Sleep(2 * time.Second)
		testkit.Equal(t, "runs", fmt.Sprint(l.times(since)), "[60 120 180]")
	})
}

// TestAScheduleThatCannotBeReadHoldsUpNoOther.
func TestAScheduleThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, l *log, since time.Time) {
		l.put(t, "broken", everyMinute)
		l.edit("broken", func(h *logv1.ScheduleHome) { h.Schedule = []byte{0xff} })
		l.put(t, "whole", everyMinute)
		defer l.keep(t)()
		time.Sleep(time.Minute + time.Second)
		testkit.Equal(t, "runs", fmt.Sprint(l.times(since)), "[60]")
	})
}
