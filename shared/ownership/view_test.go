package ownership

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// skew is how far the server's clock is ahead of the node's in these tests.
const skew = 7 * time.Hour

// watched is a view and the bucket that it watches. Times are ms of the node's clock; the
// server's dates are skew later.
type watched struct {
	t        *testing.T
	v        *view
	revision uint64
	beats    uint64
}

func watch(t *testing.T, expiry time.Duration) *watched {
	v := newView("me", 1, 250*time.Millisecond, expiry)
	v.announces(Announcement{LogVersion: 1})
	return &watched{t: t, v: v}
}

func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

// beat is a heartbeat that node shows at ms.
func (w *watched) beat(node string, ms int) signal {
	w.revision++
	s := signal{node: node, revision: w.revision, date: at(ms).Add(skew), shows: Announcement{LogVersion: 1, EveryMs: 250}}
	if node == "me" {
		w.beats++
		s.shows.Run, s.shows.Beat = 1, w.beats
	}
	return s
}

// hear shows a heartbeat and has it heard at once.
func (w *watched) hear(node string, ms int) signal {
	s := w.beat(node, ms)
	w.v.take(s, at(ms))
	return s
}

// replay is a heartbeat that was there before the watch began.
func (w *watched) replay(s signal, ms int) {
	s.replayed = true
	w.v.take(s, at(ms))
}

func (w *watched) loaded() { w.v.take(signal{loaded: true}, time.Time{}) }

func (w *watched) want(ms int, what string, want ...string) {
	w.t.Helper()
	w.v.expire(at(ms))
	testkit.Equal(w.t, what, w.v.nodes(), want)
}

func TestView(t *testing.T) {
	w := watch(t, 3*time.Second)
	w.want(0, "no one was heard", "me")
	w.hear("b", 0)
	w.hear("c", 0)
	w.hear("me", 10)
	w.want(10, "all were heard", "b", "c", "me")
	for ms := 1010; ms <= 4010; ms += 1000 {
		w.hear("b", ms)
		w.hear("me", ms)
	}
	w.want(4010, "c was silent for too long", "b", "me")
	w.v.take(signal{node: "b", revision: w.revision + 1, left: true}, at(4010))
	w.v.take(signal{node: "me", revision: w.revision + 2, left: true}, at(4010))
	w.want(4010, "b left", "me")

	w.revision += 2
	w.hear("b", 5010)
	w.hear("me", 5010)
	w.want(60_000, "deaf: no one is given up", "b", "me")
	w.hear("me", 60_010)
	w.want(60_010, "hearing again: b gets another chance", "b", "me")
	for ms := 61_010; ms <= 64_010; ms += 1000 {
		w.hear("me", ms)
	}
	w.want(64_010, "b did not use it", "me")
}

// Who has heard nothing for more than half of the expiry, not even itself, gives no one up: others have been silent no longer
// than it was deaf. When it hears again, they have as long as ever.
func TestWhoIsDeafForHalfTheExpiryGivesNobodyUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		echoes []int // after the first, at 0, when b was heard too
		at     int
		want   []string
	}{
		{"deaf since the beginning", nil, 3001, []string{"b", "me"}},
		{"deaf for more than half at the end", []int{1000, 1500}, 3001, []string{"b", "me"}},
		{"deaf for half at the end", []int{1000, 1501}, 3001, []string{"me"}},
		{"deaf for more than half in between", []int{1501, 3000}, 3001, []string{"b", "me"}},
		{"deaf for half in between", []int{1500, 3000}, 3001, []string{"me"}},
		{"and then as long as ever", []int{1501, 3000, 4500}, 4502, []string{"me"}},
	} {
		w := watch(t, 3*time.Second)
		w.hear("b", 0)
		w.hear("me", 0)
		for _, ms := range c.echoes {
			w.hear("me", ms)
		}
		w.want(c.at, c.name, c.want...)
	}
}

// TestR37WhoDiedBeforeIsNotCounted: what a starting node finds is dated by the server, against
// its own echo, whichever of them comes first.
func TestR37WhoDiedBeforeIsNotCounted(t *testing.T) {
	w := watch(t, time.Second)
	ghost, alive, late := w.beat("ghost", -60_000), w.beat("alive", -200), w.beat("late", -1100)
	w.replay(ghost, 0)
	w.replay(alive, 0)
	mine := w.beat("me", 10)
	w.loaded()
	if w.v.known() {
		t.Error("the view is known without an echo")
	}
	w.v.take(mine, at(20))
	w.replay(late, 30)
	if !w.v.known() {
		t.Error("the view is not known")
	}
	w.want(30, "by the server's dates", "alive", "me")
	w.hear("late", 40)
	w.want(40, "it lives after all", "alive", "late", "me")
	w.replay(w.beat("ahead", 60_000), 50)
	for ms := 100; ms <= 1100; ms += 100 {
		w.hear("me", ms)
	}
	w.want(1100, "a date ahead of the echo's is as good as now", "me")
}

// TestR37AReplayRevivesNobody: a watch that starts again tells old heartbeats again.
func TestR37AReplayRevivesNobody(t *testing.T) {
	w := watch(t, time.Second)
	w.loaded()
	w.hear("me", 0)
	dead, dying := w.hear("dead", 0), w.hear("dying", 900)
	for ms := 100; ms <= 1300; ms += 100 {
		w.hear("me", ms)
	}
	w.want(1300, "dead was silent for too long", "dying", "me")
	w.replay(dead, 1300)
	w.replay(dying, 1300)
	w.want(1300, "its old heartbeat counts for nothing", "dying", "me")
	for ms := 1400; ms <= 2000; ms += 100 {
		w.hear("me", ms)
	}
	w.want(2000, "nor does that of one that was not given up yet", "me")
}

// TestAReplayAfterAnOutageGivesNobodyUp: the watch that starts again tells what was shown before
// the outage, while all have a new expiry to show themselves.
func TestAReplayAfterAnOutageGivesNobodyUp(t *testing.T) {
	w := watch(t, time.Second)
	w.loaded()
	w.hear("me", 0)
	before := w.hear("b", 0)
	w.hear("me", 60_000)
	w.replay(before, 60_010)
	w.want(60_020, "b has another chance", "b", "me")
}

// TestWhoBeatsSlowlyIsWaitedFor: a node that shows its heartbeat every second may miss two of them.
func TestWhoBeatsSlowlyIsWaitedFor(t *testing.T) {
	w := watch(t, 1250*time.Millisecond)
	w.loaded()
	old := w.beat("old", 0)
	old.shows.EveryMs = 1000
	w.v.take(old, at(0))
	w.hear("me", 2900)
	w.want(2900, "it may miss two", "me", "old")
	w.hear("me", 3100)
	w.want(3100, "it missed three", "me")
}

// TestAPauseIsNoticed: a node that did not hear itself is away until it hears a heartbeat that
// it showed since; one that was still under way does not count.
func TestAPauseIsNoticed(t *testing.T) {
	w := watch(t, time.Second)
	w.loaded()
	w.hear("me", 0)
	buffered, underway := w.beat("me", 100), w.beat("me", 200)
	step := func(ms int, what string, want bool) {
		t.Helper()
		w.v.lose(at(ms), signs{beats: w.beats})
		testkit.Equal(t, what+": away", w.v.away, want)
	}
	step(1000, "others wait as long", false)
	step(30_000, "after a pause", true)
	w.v.take(buffered, at(30_001))
	step(30_001, "that was heard before the pause", true)
	w.v.take(underway, at(30_002))
	step(30_002, "that was shown before the pause", true)
	w.v.take(signal{node: "me", revision: 99, shows: Announcement{Run: 2, Beat: 1000}}, at(30_003))
	step(30_003, "that is a namesake's", true)
	w.hear("me", 30_010)
	step(30_020, "that is its own", false)
}

// TestALoneNodeIsAwayLater: it shows its heartbeat every 500 ms, so others wait for three of those, and not for the expiry.
func TestALoneNodeIsAwayLater(t *testing.T) {
	const expiry, loneExpiry = 1250, 1500
	for _, c := range []struct {
		what  string
		peer  bool
		step  int // ms between two times at which it looks
		signs func(ms int) signs
		from  int // ms at which it is away
	}{
		{"nothing is heard, alone", false, 10, func(int) signs { return signs{} }, loneExpiry + 10},
		{"nothing is heard, beside another node", true, 10, func(int) signs { return signs{} }, expiry + 10},
		{"the last one was refused, alone", false, 10, func(int) signs { return signs{refused: at(1000)} }, 1000 + loneExpiry + 10},
		{"the last one was refused, beside another node", true, 10, func(int) signs { return signs{refused: at(1000)} }, 1000 + expiry + 10},
		{"it was stopped, alone", false, loneExpiry + 1, func(ms int) signs { return signs{taken: at(ms)} }, loneExpiry + 1},
		{"it paused, alone", false, loneExpiry, func(ms int) signs { return signs{taken: at(ms)} }, -1},
		{"it was stopped, beside another node", true, expiry + 1, func(ms int) signs { return signs{taken: at(ms)} }, expiry + 1},
	} {
		w := watch(t, expiry*time.Millisecond)
		w.loaded()
		alone := w.beat("me", 0)
		alone.shows.EveryMs = 500
		w.v.take(alone, at(0))
		if c.peer {
			w.hear("b", 0)
		}
		from := -1
		for ms := 0; ms <= 6000 && from < 0; ms += c.step {
			if w.v.lose(at(ms), c.signs(ms)); w.v.away {
				from = ms
			}
		}
		testkit.Equal(t, c.what+": away from", from, c.from)
	}
}

// TestWithoutALeaderOfTheBucketNobodyIsAway: while the members bucket elects its leader no heartbeat is
// taken or heard, of anybody. A node goes on then, for as long as an election may take; one that
// hears nothing but whose heartbeats are taken does so forever; one that was stopped does not.
func TestWithoutALeaderOfTheBucketNobodyIsAway(t *testing.T) {
	for _, c := range []struct {
		what  string
		until int // ms
		signs func(ms int) signs
		want  bool
	}{
		{"no one answers", 9000, func(ms int) signs { return signs{refused: at(ms - 500)} }, false},
		{"no one answers for longer than an election takes", 16_000, func(ms int) signs { return signs{refused: at(ms - 500)} }, true},
		{"it answered long ago", 4000, func(int) signs { return signs{refused: at(500)} }, true},
		{"it is heard, and deaf", 60_000, func(ms int) signs { return signs{taken: at(ms - 500)} }, false},
		{"it was heard long ago", 4000, func(int) signs { return signs{taken: at(500)} }, true},
	} {
		w := watch(t, 1250*time.Millisecond)
		w.loaded()
		w.hear("me", 0)
		for ms := 0; ms <= c.until; ms += 50 {
			w.v.lose(at(ms), c.signs(ms))
		}
		testkit.Equal(t, c.what+": away", w.v.away, c.want)
	}
	w := watch(t, 1250*time.Millisecond)
	w.loaded()
	w.hear("me", 0)
	w.v.lose(at(0), signs{})
	if w.v.lose(at(2000), signs{taken: at(1999), refused: at(1999)}); !w.v.away {
		t.Error("it was stopped for longer than others wait, and did not notice")
	}
}

func TestWhatOthersHold(t *testing.T) {
	w := watch(t, time.Second)
	w.loaded()
	w.hear("me", 0)
	holds := func(node string, leaving bool, partitions ...int) {
		s := w.beat(node, 0)
		s.shows.Leaving, s.shows.Holds = leaving, partitions
		w.v.take(s, at(0))
	}
	want := func(want ...int) {
		t.Helper()
		testkit.Equal(t, "held", w.v.held(), want)
	}
	holds("a", true, 1, 4)
	holds("b", true, 2, 4)
	holds("c", false, 7)
	want(1, 2, 4, 7)
	if c := w.v.candidates(1); len(c) != 2 || c[0].Node != "c" || c[1].Node != "me" {
		t.Errorf("candidates: %v", c)
	}
	holds("b", true, 2)
	want(1, 2, 4, 7)
	holds("a", true)
	want(2, 7)
	for ms := 100; ms <= 1100; ms += 100 {
		w.hear("me", ms)
	}
	w.want(1100, "they died while they drained", "me")
	want()
}

// The view is due again when the first peer expires, and often while the node's own heartbeat is late: then it may be cut off, or its watch dead.
func TestAViewIsDueWhenItMayChange(t *testing.T) {
	const expiry, beat = 1250 * time.Millisecond, 250 * time.Millisecond
	w := watch(t, expiry)
	due := func(ms int, what string, want time.Duration) {
		t.Helper()
		testkit.Equal(t, what, w.v.dueIn(at(ms)), want)
	}
	due(0, "nothing was heard", beat/4)
	w.hear("me", 0)
	due(0, "its heartbeat does not say yet that it is alone", 2*beat)
	alone := w.beat("me", 0)
	alone.shows.EveryMs = 500
	w.v.take(alone, at(0))
	due(0, "a lone node's own heartbeat may be late", 4*beat)
	w.hear("b", 0)
	w.hear("me", 500)
	due(500, "its own heartbeat may be late", 2*beat)
	w.hear("me", 900)
	due(900, "b may expire", expiry-900*time.Millisecond)
	due(1240, "b is about to expire", beat/4)
	w.hear("b", 1245)
	due(1250, "its own heartbeat is about to be late", 150*time.Millisecond)
	due(2000, "its own heartbeat is late", beat/4)
}

// TestANodeIsLostWhenOthersTakeItForDead: they go by what its last heartbeat says. It has been alone since then, and shows it half as often from now on, but no one
// has heard of that.
func TestANodeIsLostWhenOthersTakeItForDead(t *testing.T) {
	const expiry = 1250 * time.Millisecond
	mine, theirs := watch(t, expiry), watch(t, expiry)
	mine.loaded()
	theirs.loaded()
	theirs.hear("me", 0)
	mine.hear("b", 0)
	last := mine.hear("me", 0)
	last.node = "a"
	theirs.v.take(last, at(0))
	mine.v.take(signal{node: "b", revision: mine.revision + 1, left: true}, at(10))
	mine.v.lose(at(600), signs{})
	mine.v.lose(at(1200), signs{})
	testkit.Equal(t, "lost while others believe it alive", mine.v.away, false)
	theirs.hear("me", 600)
	theirs.hear("me", 1200)
	theirs.want(1251, "others take it for dead", "me")
	mine.v.lose(at(1251), signs{})
	testkit.Equal(t, "lost then", mine.v.away, true)
}
