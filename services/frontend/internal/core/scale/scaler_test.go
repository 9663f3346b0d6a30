package scale

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var mail = Tasklist{"shop", "mail"}

// rig is a scaler with one tasklist, and what frontends would have stored of it.
type rig struct {
	*Scaler
	now     time.Time
	setting Setting
	// gone: the settings leave it to the engine no more.
	gone bool
}

// newRig has partitions meant for 100 triggers in a second, up after a minute, down after two, 1 to 8 of them.
func newRig(partitions int) *rig {
	return &rig{
		Scaler: New(Config{PerPartition: 100, UpAfter: time.Minute, DownAfter: 2 * time.Minute}), now: time.Unix(1_000_000, 0),
		setting: Setting{Least: 1, Most: 8, Partitions: partitions, Revision: 1},
	}
}

// tick is a look each 15 seconds, after reports of each second. It returns the number to be stored; 0 = none.
func (r *rig) tick(rates ...float64) int {
	for range 15 {
		r.now = r.now.Add(time.Second)
		for p, rate := range rates {
			if rate != missing {
				r.Report(mail, p, rate, r.now)
			}
		}
	}
	return r.look()
}

func (r *rig) look() int {
	all := r.Look(r.now, func(Tasklist) (Setting, bool) { return r.setting, !r.gone })
	if len(all) == 0 {
		return 0
	}
	if c := all[0]; len(all) > 1 || c.Of != mail || c.From != r.setting.Partitions || c.Replaces != r.setting.Revision {
		panic(fmt.Sprintf("%+v of %+v", all, r.setting))
	}
	return all[0].To
}

// store is what a frontend stored, this one or another.
func (r *rig) store(n int) {
	r.setting.Partitions = n
	r.setting.Revision++
}

// ticks looks so often, and returns in which look there was first something to be stored, from 1, and what; 0 = none.
func (r *rig) ticks(n int, rates ...float64) (at, to int) {
	for i := range n {
		if to := r.tick(rates...); to > 0 {
			return i + 1, to
		}
	}
	return 0, 0
}

const missing = -1

// What lasts changes the number, to as many partitions as the rate needs and may be; what is at a border does not.
func TestARateThatLasts(t *testing.T) {
	for _, c := range []struct {
		name       string
		partitions int
		rates      []float64
		at, to     int
	}{
		{"idle", 1, []float64{0}, 0, 0},
		{"just what one takes", 1, []float64{100}, 0, 0},
		{"above what one takes", 1, []float64{101}, 5, 2},
		{"five times that", 1, []float64{500}, 5, 5},
		{"a little more than five times", 1, []float64{501}, 5, 6},
		{"more than may be", 1, []float64{5000}, 5, 8},
		{"more than the most has", 8, []float64{200, 200, 200, 200, 200, 200, 200, 200}, 0, 0},
		{"uneven, and enough for two", 2, []float64{199, 1}, 0, 0},
		{"uneven, and too much for two", 2, []float64{201, 0}, 5, 3},
		{"one less would do, just", 3, []float64{50, 50, 50}, 0, 0},
		{"well below what one less takes", 3, []float64{50, 50, 49}, 9, 2},
		{"two, well below", 2, []float64{37, 37}, 9, 1},
		{"nothing comes", 8, []float64{0, 0, 0, 0, 0, 0, 0, 0}, 9, 1},
		{"partitions that are no more count", 1, []float64{60, 60}, 5, 2},
		{"partitions that are no more need not report", 1, []float64{60, missing, 60}, 5, 2},
		{"one is not known", 2, []float64{500, missing}, 0, 0},
		{"the first is not known", 2, []float64{missing, 0}, 0, 0},
		{"no number", 1, []float64{math.NaN()}, 0, 0},
		{"no number beside too much", 2, []float64{math.NaN(), 500}, 5, 5},
		{"less than nothing beside too much", 2, []float64{-400, 500}, 5, 5},
		{"endless", 1, []float64{math.Inf(1)}, 5, 8},
	} {
		r := newRig(c.partitions)
		if at, to := r.ticks(12, c.rates...); at != c.at || to != c.to {
			t.Errorf("%s: %d partitions at look %d, want %d at %d", c.name, to, at, c.to, c.at)
		}
	}
}

// The least is kept, too.
func TestNoFewerThanTheLeast(t *testing.T) {
	r := newRig(4)
	r.setting.Least = 3
	if at, to := r.ticks(12, 0, 0, 0, 0); at != 9 || to != 3 {
		t.Fatalf("%d at %d", to, at)
	}
	r.store(3)
	if at, to := r.ticks(12, 0, 0, 0); at != 0 {
		t.Fatalf("%d at %d", to, at)
	}
}

// A rate that goes up and down changes nothing, however high it is at times.
func TestARateThatFluctuates(t *testing.T) {
	r := newRig(2)
	for i := range 40 {
		rate := 1000.0
		if i%4 == 3 {
			rate = 50 // neither too much nor too little
		}
		if to := r.tick(rate, rate); to > 0 {
			t.Fatalf("look %d: %d partitions", i, to)
		}
	}
	for i := range 40 {
		rate := 0.0
		if i%8 == 7 {
			rate = 50
		}
		if to := r.tick(rate, rate); to > 0 {
			t.Fatalf("look %d: %d partitions", i, to)
		}
	}
	// Within a look it is the mean that counts.
	r = newRig(1)
	for i := range 75 {
		r.now = r.now.Add(time.Second)
		r.Report(mail, 0, float64(i%2)*190, r.now)
		if i%15 == 14 && r.look() > 0 {
			t.Fatalf("after %d seconds of 95 on average", i+1)
		}
	}
}

// Whatever makes it unsure that it has lasted has it start again: a partition that did not report, also between two looks, another number,
// other bounds, and a change that was decided, whether or not it was stored.
func TestItStartsAgain(t *testing.T) {
	for name, do := range map[string]func(r *rig){
		"a partition was missing":                   func(r *rig) { r.tick(500, missing) },
		"all were missing":                          func(r *rig) { r.tick() },
		"another frontend stored the same number":   func(r *rig) { r.store(2) },
		"the most was edited":                       func(r *rig) { r.setting.Most = 7 },
		"the least was edited":                      func(r *rig) { r.setting.Least = 2 },
		"one was missing between two looks for 6 s": func(r *rig) { r.gap(6) },
	} {
		r := newRig(2)
		r.ticks(4, 500, 500)
		do(r)
		at, to := r.ticks(9, 500, 500)
		if want := min(10, r.setting.Most); at != 5 || to != want {
			t.Errorf("%s: %d partitions at look %d, want %d at 5", name, to, at, want)
		}
		// It is not stored: another frontend was first, or no one answered. Nothing changes at the looks right after.
		if at, to := r.ticks(9, 500, 500); at != 5 {
			t.Errorf("%s, and was not stored: %d at look %d", name, to, at)
		}
	}
	r := newRig(2)
	r.ticks(4, 500, 500)
	r.gap(4)
	testkit.Equal(t, "a report or two were lost", r.tick(500, 500), 8)
}

// gap is that partition 1 does not report for so many seconds, after a look and before the next.
func (r *rig) gap(seconds int) {
	for range seconds {
		r.now = r.now.Add(time.Second)
		r.Report(mail, 0, 500, r.now)
	}
}

// Two frontends that hear the same decide the same; the one whose change is not stored goes on from the other's.
func TestTwoDecideAlike(t *testing.T) {
	a, b := newRig(1), newRig(1)
	for range 5 {
		first, second := a.tick(500), b.tick(500)
		testkit.MustEqual(t, "again", second, first)
	}
	a.store(5) // b's is stale
	b.store(5)
	if at, _ := b.ticks(12, 100, 100, 100, 100, 100); at != 0 {
		t.Errorf("changed again at look %d", at)
	}
}

// A tasklist that the engine does not scale any more, or that does not report, is forgotten.
func TestForgets(t *testing.T) {
	r := newRig(1)
	r.tick(500)
	r.gone = true
	if r.look(); len(r.lists) != 0 {
		t.Error("it is remembered")
	}
	r.gone = false
	r.tick(500)
	r.now = r.now.Add(ReportedFor)
	if r.look(); len(r.lists) != 1 {
		t.Error("it is forgotten too early")
	}
	r.now = r.now.Add(time.Second)
	if r.look(); len(r.lists) != 0 {
		t.Error("it does not report and is remembered")
	}
	r.Report(mail, -1, 500, r.now)
	r.Report(mail, 64, 500, r.now)
	testkit.Equal(t, "there are no such partitions", len(r.lists), 0)
}

// Changes come in the order of tasklists.
func TestChangesAreSorted(t *testing.T) {
	r := newRig(1)
	for range 6 {
		r.now = r.now.Add(ReportedFor)
		for _, of := range []Tasklist{{"shop", "b"}, {"bank", "z"}, {"shop", "a"}} {
			r.Report(of, 0, 900, r.now)
		}
		r.now = r.now.Add(10 * time.Second)
		for _, of := range []Tasklist{{"shop", "b"}, {"bank", "z"}, {"shop", "a"}} {
			r.Report(of, 0, 900, r.now)
		}
	}
	var got []Tasklist
	for i := range 61 {
		r.now = r.now.Add(time.Second)
		for _, of := range []Tasklist{{"shop", "b"}, {"bank", "z"}, {"shop", "a"}} {
			r.Report(of, 0, 900, r.now)
		}
		for _, c := range r.Look(r.now, func(Tasklist) (Setting, bool) { return r.setting, true }) {
			if got = append(got, c.Of); i != 60 || c.PerSecond != 900 {
				t.Errorf("after %d s: %+v", i, c)
			}
		}
	}
	if fmt.Sprint(got) != "[{bank z} {shop a} {shop b}]" {
		t.Error(got)
	}
}
