package runs

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const minute, hour = 60_000, 3_600_000

// every is a calendar with a time each so many ms, each run later by the jitter.
type every struct{ ms, jitter int64 }

func (e every) Next(after int64) (int64, bool) { return after - after%e.ms + e.ms, true }
func (e every) Jitter(int64) int64             { return e.jitter }

// world is a schedule whose tasks run until a test ends them.
type world struct {
	State
	p     Policy
	c     Calendar
	tasks map[ids.TaskID]int64 // the times of the runs that have not ended
	made  uint64
}

func newWorld(p Policy, c Calendar, nowMS int64) *world {
	if p.Missed == 0 {
		p.Missed = MissedLast
	}
	if p.CatchUpMS == 0 {
		p.CatchUpMS = hour
	}
	return &world{State: State{DecidedMS: nowMS}, p: p, c: c, tasks: map[ids.TaskID]int64{}}
}

func (w *world) decide(nowMS int64) Decision {
	d := w.Decide(w.p, w.c, nowMS, func(id ids.TaskID) bool { _, runs := w.tasks[id]; return !runs }, func(Run) ids.TaskID {
		w.made++
		var id ids.TaskID
		id[15], id[14] = byte(w.made), byte(w.made>>8)
		return id
	})
	for _, r := range d.Start {
		w.tasks[r.Task] = r.AtMS
	}
	return d
}

// at decides at a time, and checks which runs start: the minutes of their times.
func (w *world) at(t *testing.T, nowMS int64, want ...int64) {
	t.Helper()
	got := []int64{}
	for _, r := range w.decide(nowMS).Start {
		got = append(got, r.AtMS/minute)
	}
	testkit.Equal(t, fmt.Sprintf("starts at minute %v", float64(nowMS)/minute), fmt.Sprint(got), fmt.Sprint(append([]int64{}, want...)))
}

// end ends all tasks.
func (w *world) end() { clear(w.tasks) }

func (w *world) counts(t *testing.T, runs, skipped, missed int64) {
	t.Helper()
	testkit.Equal(t, "runs, skipped, missed", [3]int64{w.Runs, w.Skipped, w.Missed}, [3]int64{runs, skipped, missed})
}

func TestEachTimeHasARun(t *testing.T) {
	w := newWorld(Policy{Overlap: Skip}, every{ms: minute}, 0)
	w.at(t, minute-1)
	w.at(t, minute, 1)
	w.at(t, minute+1) // decided again, by another keeper: nothing
	w.end()
	w.at(t, 2*minute, 2)
	w.counts(t, 2, 0, 0)
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		overlap Overlap
		// second and third are the runs that start when the first one runs at the time of two more, then what starts once all have ended.
		second, third, ended []int64
		runs, skipped        int64
	}{
		{Skip, nil, nil, nil, 1, 2},
		{BufferOne, nil, nil, []int64{2}, 2, 1},
		{BufferAll, nil, nil, []int64{2}, 2, 0},
		{Allow, []int64{2}, []int64{3}, nil, 3, 0},
		{CancelOther, nil, nil, []int64{3}, 2, 1},
	} {
		t.Run(fmt.Sprint(c.overlap), func(t *testing.T) {
			w := newWorld(Policy{Overlap: c.overlap}, every{ms: minute}, 0)
			w.at(t, minute, 1)
			w.at(t, 2*minute, c.second...)
			w.at(t, 3*minute, c.third...)
			if c.overlap == CancelOther {
				testkit.Equal(t, "cancels", len(w.decide(3*minute+1).Cancel), 1)
			}
			w.end()
			w.at(t, 3*minute+2000, c.ended...)
			w.counts(t, c.runs, c.skipped, 0)
			if c.overlap == BufferAll {
				w.end()
				w.at(t, 3*minute+3000, 3)
			}
		})
	}
}

// TestMissedRuns: for 70 minutes no one decides, and runs are made up for that are up to ten minutes old.
func TestMissedRuns(t *testing.T) {
	for _, c := range []struct {
		rule   Missed
		starts []int64
	}{
		{MissedAll, []int64{60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70}},
		{MissedLast, []int64{69, 70}},
		{MissedSkip, []int64{70}},
	} {
		t.Run(fmt.Sprint(c.rule), func(t *testing.T) {
			w := newWorld(Policy{Overlap: Allow, Missed: c.rule, CatchUpMS: 10 * minute}, every{ms: minute}, 0)
			w.at(t, 70*minute, c.starts...)
			w.counts(t, int64(len(c.starts)), 0, int64(70-len(c.starts)))
		})
	}
}

func TestWhatWasMissedLongAgoIsNotMadeUpFor(t *testing.T) {
	w := newWorld(Policy{Overlap: Skip}, every{ms: 24 * hour}, 0)
	w.at(t, 24*hour+hour+1)
	w.counts(t, 0, 0, 1)
	w.at(t, 48*hour+hour, 48*60)
}

func TestAPausedScheduleHasTriggersOnly(t *testing.T) {
	w := newWorld(Policy{Overlap: Skip, Paused: true}, every{ms: minute}, 0)
	w.Due = []Run{{AtMS: 10, StartMS: 10, Reason: Backfilled}, {AtMS: 20, StartMS: 20, Reason: Triggered}, {AtMS: 30, StartMS: 30, Reason: Triggered}}
	d := w.decide(5 * minute)
	testkit.Equal(t, "starts", len(d.Start), 2)
	testkit.Equal(t, "waits", len(w.Due), 1)
	if _, ok := w.Wake(w.p, w.c, 5*minute); ok {
		t.Error("it is decided again by itself")
	}
	w.p.Paused, w.DecidedMS = false, 5*minute
	w.end()
	w.at(t, 5*minute+1, 0)
	w.counts(t, 0, 0, 0)
}

func TestTheNumberOfRunsIsBounded(t *testing.T) {
	w := newWorld(Policy{Overlap: Allow, RunsMax: 3}, every{ms: minute}, 0)
	w.at(t, minute, 1)
	w.at(t, 20*minute, 19, 20) // the last one that was missed, and one more
	w.at(t, 21*minute)
	if at, ok := w.Wake(w.p, w.c, 21*minute); ok {
		t.Errorf("it is decided again at %d", at)
	}
}

func TestJitter(t *testing.T) {
	w := newWorld(Policy{Overlap: Skip}, every{minute, 5000}, 0)
	w.at(t, minute)
	if at, ok := w.Wake(w.p, w.c, minute); !ok || at != minute+5000 {
		t.Errorf("it is decided again at %d", at)
	}
	w.at(t, minute+5000, 1)
}

func TestBackfillsGoOneAfterTheOther(t *testing.T) {
	w := newWorld(Policy{Overlap: Skip}, every{ms: hour}, 0)
	w.Due = []Run{{AtMS: minute, StartMS: 1, Reason: Backfilled}, {AtMS: 2 * minute, StartMS: 1, Reason: Backfilled}}
	w.at(t, 3*minute, 1)
	w.at(t, 4*minute)
	w.end()
	w.at(t, 5*minute, 2)
	w.counts(t, 0, 0, 0)
}

func TestAtMostSoManyWait(t *testing.T) {
	w := newWorld(Policy{Overlap: BufferAll}, every{ms: minute}, 0)
	for m := int64(1); m <= 150; m++ {
		w.decide(m * minute)
	}
	testkit.Equal(t, "waiting", len(w.Due), DueMax)
	w.counts(t, 1, 150-1-DueMax, 0)
}

// TestEveryTimeIsDecidedOnce: whatever the rules, and however long no one decides, each time of the calendar is one of: started, skipped, missed, waiting; and
// where runs may not overlap, none does.
func TestEveryTimeIsDecidedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := every{rapid.SampledFrom([]int64{1000, 7000, minute, hour}).Draw(t, "every"), rapid.SampledFrom([]int64{0, 500, 5000}).Draw(t, "jitter")}
		w := newWorld(Policy{
			Overlap: Overlap(rapid.IntRange(1, 5).Draw(t, "overlap")), Missed: Missed(rapid.IntRange(1, 3).Draw(t, "missed")), CatchUpMS: rapid.Int64Range(0, 2*hour).Draw(t, "catch up"),
		}, c, 0)
		started := map[int64]int{}
		now := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if at, ok := w.Wake(w.p, c, now); ok && rapid.Bool().Draw(t, "on time") {
				now = max(now, at)
			} else {
				now += rapid.Int64Range(0, 3*c.ms).Draw(t, "late")
			}
			if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
				w.end()
			}
			was, before := w.Clone(), len(w.tasks)
			d := w.decide(now)
			if !d.Changed && (len(d.Start) > 0 || fmt.Sprint(was) != fmt.Sprint(w.State)) {
				t.Fatal("a change is not reported")
			}
			for _, r := range d.Start {
				if started[r.AtMS]++; started[r.AtMS] > 1 {
					t.Fatalf("%d has two runs", r.AtMS)
				}
				if r.AtMS+c.jitter > now {
					t.Fatalf("%d runs at %d", r.AtMS, now)
				}
			}
			if w.p.Overlap != Allow && len(d.Start) > 0 && before+len(d.Start) > 1 {
				t.Fatalf("%d runs start beside %d", len(d.Start), before)
			}
			times := w.DecidedMS / c.ms
			if n := w.Runs + w.Skipped + w.Missed + int64(len(w.Due)); n != times {
				t.Fatalf("%d times are decided, and %d were", n, times)
			}
			if !slices.IsSortedFunc(w.Due, func(a, b Run) int { return int(a.AtMS - b.AtMS) }) {
				t.Fatalf("out of order: %v", w.Due)
			}
			if len(w.Due) > DueMax+1 || len(w.Recent) > RecentMax {
				t.Fatal("unbounded")
			}
		}
	})
}
