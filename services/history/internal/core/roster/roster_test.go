package roster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	second = time.Second
	start  = 100 * time.Second
)

// ear is a roster with the messages of its process to itself.
type ear struct {
	*Roster
	number uint64
}

func newEar() *ear { return &ear{Roster: New(LateMax)} }

// listen has a message come that was sent late before now.
func (e *ear) listen(now, late time.Duration) {
	e.number++
	e.Listens(e.number, now-late, now)
}

// upTo has messages come until a time, ten times a second, and looks who fell silent.
func (e *ear) upTo(from, to time.Duration) (found int) {
	for at := from; at <= to; at += second / 10 {
		e.listen(at, time.Millisecond)
		found += e.Fall(at)
	}
	return found
}

func id(n int) string { return fmt.Sprintf("worker-%09d", n) }

func sign(n int) *Sign { return &Sign{ID: id(n), Every: second} }

// hear has a sign come.
func (e *ear) hear(domain string, s *Sign, now time.Duration) {
	if e.Passes(domain, 200, now) {
		e.Heard(domain, s, now)
	}
}

func TestSilenceIsTwoSignsAndSlack(t *testing.T) {
	e := newEar()
	e.upTo(start-second, start)
	e.hear("shop", sign(1), start)
	testkit.MustEqual(t, "too early", e.upTo(start+second/10, start+2500*time.Millisecond), 0)
	if n := e.upTo(start+2600*time.Millisecond, start+2600*time.Millisecond); n != 1 || !slices.Equal(e.Fallen(), []Key{{"shop", id(1)}}) {
		t.Fatalf("%d, %v", n, e.Fallen())
	}
	if page, _ := e.List("shop", "", 10); len(page)+len(e.These("shop", []string{id(1)})) != 0 {
		t.Errorf("listed: %v", page)
	}
	if n := e.upTo(start+2700*time.Millisecond, start+5500*time.Millisecond); n != 0 || len(e.Fallen()) != 1 {
		t.Errorf("%d again, %v", n, e.Fallen())
	}
	if n := e.upTo(start+5600*time.Millisecond, start+5600*time.Millisecond); n != 0 || len(e.Fallen()) != 0 || e.count != 0 {
		t.Errorf("not forgotten: %d, %v, %d", n, e.Fallen(), e.count)
	}
}

// TestAnExpectedWorkerIsMissed that is not heard, once its grace and its time are over; one that is heard is a worker as any other.
func TestAnExpectedWorkerIsMissed(t *testing.T) {
	e := newEar()
	e.upTo(start-second, start)
	e.hear("shop", sign(2), start)
	for n := range 3 {
		e.Expect(Key{"shop", id(n)}, second, start)
	}
	for at := start + second; at < start+30*second; at += second {
		e.hear("shop", sign(2), at)
		if at >= start+5*second {
			e.hear("shop", sign(1), at)
		}
		found := e.upTo(at, at+9*second/10)
		if over := at == start+Grace+2*second; over != (found == 1) || over && !slices.Equal(e.Fallen(), []Key{{"shop", id(0)}}) {
			t.Errorf("after %v %d fell, %v", at-start, found, e.Fallen())
		}
		page, _ := e.List("shop", "", 10)
		if late := at >= start+5*second; len(page) != 1+map[bool]int{true: 1}[late] || e.SignsEvery(Key{"shop", id(1)}) != second {
			t.Errorf("after %v these are alive: %v", at-start, page)
		}
	}
	if e.SignsEvery(Key{"shop", id(0)}) != 0 || e.SignsEvery(Key{"other", id(1)}) != 0 || e.count != 2 {
		t.Errorf("%d are known", e.count)
	}
}

// TestOnlyWhoHasRoomIsExpected: a worker that a full roster does not hear either is not missed.
func TestOnlyWhoHasRoomIsExpected(t *testing.T) {
	e := newEar()
	e.upTo(start-second, start)
	for n := range domainWorkersMax + 1 {
		e.Expect(Key{"shop", id(n)}, second, start)
	}
	if found := e.upTo(start, start+Grace+3*second); found != domainWorkersMax {
		t.Errorf("%d are missed", found)
	}
}

func TestOneThatLeavesIsNotMissed(t *testing.T) {
	e := newEar()
	e.upTo(start-second, start)
	e.hear("shop", sign(1), start)
	e.hear("media", sign(1), start) // another one, with the same id
	leaving := sign(1)
	leaving.Leaving = true
	e.hear("shop", leaving, start)
	e.hear("shop", &Sign{ID: id(2), Every: second, Leaving: true}, start) // never heard
	if page, _ := e.List("shop", "", 10); len(page) != 0 {
		t.Errorf("listed: %v", page)
	}
	if e.upTo(start+second/10, start+3*second) != 1 || !slices.Equal(e.Fallen(), []Key{{"media", id(1)}}) || e.count != 1 {
		t.Errorf("%v, %d", e.Fallen(), e.count)
	}
}

// TestASilentWorkerThatLeaves: its last sign was on its way. It is missed no more, and forgotten once.
func TestASilentWorkerThatLeaves(t *testing.T) {
	e := newEar()
	e.upTo(start-second, start)
	e.hear("shop", sign(1), start)
	e.upTo(start+second/10, start+3*second)
	leaving := sign(1)
	leaving.Leaving = true
	e.hear("shop", leaving, start+3*second)
	if len(e.Fallen()) != 0 || e.count != 0 {
		t.Errorf("%v, %d are counted", e.Fallen(), e.count)
	}
	if e.upTo(start+3*second, start+3*second+2*SaidFor); e.count != 0 {
		t.Errorf("%d are counted", e.count)
	}
}

// TestSilenceIsConcludedOnlyFromWhatWasHeard: while the process does not hear itself, or not all, no worker is silent; and then all have their time
// again.
func TestSilenceIsConcludedOnlyFromWhatWasHeard(t *testing.T) {
	for name, c := range map[string]struct {
		during func(e *ear, at time.Duration)
		// silentAt is when it is silent then, a second after the last sign at the earliest.
		silentAt time.Duration
	}{
		"it hears all":      {func(e *ear, at time.Duration) { e.listen(at, 0) }, 2500 * time.Millisecond},
		"it hears nothing":  {func(*ear, time.Duration) {}, 12500 * time.Millisecond},
		"one is missing":    {func(e *ear, at time.Duration) { e.number++; e.listen(at, 0) }, 12500 * time.Millisecond},
		"they are late":     {func(e *ear, at time.Duration) { e.listen(at, 1100*time.Millisecond) }, 12500 * time.Millisecond},
		"signs may be lost": {func(e *ear, at time.Duration) { e.listen(at, 0); e.Deaf(at) }, 12500 * time.Millisecond},
		"one domain is flood": {func(e *ear, at time.Duration) {
			e.listen(at, 0)
			e.domains["shop"].signs = signsMax
			e.Passes("shop", 200, at)
		}, 12500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEar()
			e.upTo(start-second, start)
			e.hear("shop", sign(1), start)
			var silentAt time.Duration
			for at := start + second/10; at < start+20*second && silentAt == 0; at += second / 10 {
				if at < start+10*second {
					c.during(e, at)
				} else {
					e.listen(at, 0)
				}
				if e.Fall(at) > 0 {
					silentAt = at - start
				}
			}
			if silentAt < c.silentAt-second/5 || silentAt > c.silentAt+second/5 {
				t.Errorf("silent after %v, want %v", silentAt, c.silentAt)
			}
		})
	}
}

// TestI14_ADomainTakesNoMoreThanItsShare of the roster, nor of the time to read signs.
func TestI14_ADomainTakesNoMoreThanItsShare(t *testing.T) {
	e := newEar()
	for n := range domainWorkersMax + 10 {
		e.Passes("flood", 200, start+time.Duration(n)*time.Millisecond)
		e.Heard("flood", sign(n), start)
	}
	e.hear("shop", sign(1), start)
	if got := len(e.domains["flood"].workers); got != domainWorkersMax || len(e.domains["shop"].workers) != 1 || e.count != got+1 {
		t.Errorf("%d of the flood, %d of the other", got, len(e.domains["shop"].workers))
	}
	at := start + 100*second
	for n := range signsMax {
		if !e.Passes("flood", 200, at) {
			t.Fatalf("%d is refused", n)
		}
	}
	if e.Passes("flood", 200, at) || !e.Passes("shop", 200, at) || !e.Passes("flood", 200, at+second) {
		t.Error("the wrong ones pass")
	}
	for n := range workersMax {
		name := fmt.Sprint("d", n/domainWorkersMax)
		e.Passes(name, 200, at+2*second+time.Duration(n)*time.Millisecond)
		e.Heard(name, sign(n), at)
	}
	testkit.Equal(t, "in all", e.count, workersMax)
}

func TestTheListIsSortedAndInPages(t *testing.T) {
	e := newEar()
	for _, n := range []int{3, 1, 2} {
		e.hear("shop", sign(n), start)
	}
	e.hear("media", sign(0), start)
	ids := func(page []Worker, more bool) string {
		var all []string
		for _, w := range page {
			all = append(all, w.ID[len(w.ID)-1:])
		}
		return fmt.Sprint(all, more)
	}
	for want, got := range map[string]string{
		"[1 2] true": ids(e.List("shop", "", 2)), "[3] false": ids(e.List("shop", id(2), 2)), "[2 3] false": ids(e.List("shop", id(1), 2)), "[] false": ids(e.List("other", "", 2)),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	these := func(name string, all ...string) string { return ids(e.These(name, all), false) }
	for want, got := range map[string]string{
		"[1 3] false": these("shop", id(3), id(1), id(1), id(0), "unknown"), "[0] false": these("media", id(0), id(1)), "[] false": these("other", id(1)),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if e.KnownFor(start) != 0 {
		t.Error("it has listened")
	}
	e.listen(start, second)
	e.listen(start+second, 0)
	testkit.Equal(t, "known for", e.KnownFor(start+5*second), 6*second)
}

// TestNoOneAliveIsSilentAndEveryoneDeadIs: workers come, die, are paused and leave, the process is deaf now and then. A worker that has sent its signs in time,
// as far as they could be heard, is never silent; one that is dead is, once the process has listened for long enough.
func TestNoOneAliveIsSilentAndEveryoneDeadIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEar()
		type worker struct {
			n           int
			alive, said bool
			next        time.Duration
			last        time.Duration // the last sign that was heard
		}
		var all [6]worker
		for i := range all {
			all[i].n = i
		}
		deafUntil, deafAt := start, start
		for at := start; at < start+60*second; at += second / 10 {
			deaf := at < deafUntil
			if !deaf && rapid.IntRange(0, 200).Draw(t, "deaf") == 0 {
				deafUntil = at + time.Duration(rapid.IntRange(1, 80).Draw(t, "for"))*second/10
				deaf = true
			}
			e.number++
			if deaf {
				deafAt = at
			} else {
				e.Listens(e.number, at-time.Millisecond, at)
			}
			for i := range all {
				w := &all[i]
				switch rapid.IntRange(0, 150).Draw(t, "what") {
				case 0:
					w.alive = false
				case 1:
					w.alive, w.next = true, at
				}
				if w.alive && at >= w.next {
					w.next += second
					if !deaf {
						e.hear("shop", sign(i), at)
						w.last, w.said = at, false
					}
				}
			}
			e.Fall(at)
			for _, k := range e.Fallen() {
				i := slices.IndexFunc(all[:], func(w worker) bool { return k.ID == id(w.n) })
				if w := &all[i]; !w.said {
					w.said = true
					if heard := max(w.last, deafAt); at-heard < 2*second+Slack {
						t.Fatalf("at %v worker %d is silent: heard at %v, deaf at %v", at-start, i, w.last-start, deafAt-start)
					}
				}
			}
			for i := range all {
				w := &all[i]
				if heard := max(w.last, deafAt+second/10); w.last > 0 && !w.said && at-heard > 2*second+Slack+second/5 {
					t.Fatalf("at %v worker %d is not silent: heard at %v, deaf at %v", at-start, i, w.last-start, deafAt-start)
				}
			}
		}
	})
}

// TestNextIsWhenAWorkerFalls, and then when it is forgotten.
func TestNextIsWhenAWorkerFalls(t *testing.T) {
	e := newEar()
	next := func(what string, want time.Duration) {
		t.Helper()
		at, ok := e.Next()
		testkit.MustEqual(t, what, at, want)
		testkit.MustEqual(t, what+" there is one", ok, want != 0)
	}
	e.upTo(start-second, start)
	next("no worker", 0)
	e.hear("shop", sign(1), start)
	silent := start + 2*second + Slack
	next("heard", silent)
	testkit.MustEqual(t, "fell", e.upTo(start+second/10, silent+second/10), 1)
	next("fallen", silent+second/10+SaidFor)
	e.upTo(silent+second/5, silent+second/10+SaidFor)
	next("forgotten", 0)
}
