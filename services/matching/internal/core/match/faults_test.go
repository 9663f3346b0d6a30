package match

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var faultsFlag = flag.Int("match.faults", 1000, "how many faults TestI8_FaultsLeakNoSlotAndOverbookNone waits for")

// faults counts what went wrong in a storm, by kind.
type faults map[string]int

func (f faults) sum() int {
	n := 0
	for _, one := range f {
		n += one
	}
	return n
}

func (f faults) String() string {
	text := ""
	for _, kind := range slices.Sorted(maps.Keys(f)) {
		text += fmt.Sprintf("%8d  %s\n", f[kind], kind)
	}
	return text
}

// failures are what else goes wrong in a world.
type failures struct {
	// twice tells whether a message comes twice, lost whether a hint never comes, late how much later a verdict comes, or a call of which
	// the outcome is lost is carried out.
	twice, lost func() bool
	late        func() time.Duration
	// changedAt is when a limit came or went. booked counts how often one was checked, freed those that were found free in the end.
	changedAt     map[string]time.Duration
	booked, freed int
}

// none is that nothing goes wrong.
func none() failures {
	return failures{
		twice: func() bool { return false }, lost: func() bool { return false }, late: func() time.Duration { return 0 },
		changedAt: map[string]time.Duration{},
	}
}

// do has the tables carry out a call, later if its outcome is lost and it is late.
func (w *world) do(c table.Call, lost bool) (out table.Outcome) {
	do := func() {
		out = w.tables.Do(c, epochMS*1000+w.now.Microseconds())
		w.tokensOf(&c, &out)
	}
	if later := w.late(); lost && later > 0 {
		w.after(later, do)
	} else {
		do()
	}
	return out
}

// chance tells whether a fault happens now that happens once in n times.
func (w *storm) chance(n int, kind string) bool {
	if !w.wild || w.r.IntN(n) > 0 {
		return false
	}
	w.faults[kind]++
	return true
}

// fails has messages be lost, late and doubled, and workers leave.
func (w *storm) fails() {
	w.twice = func() bool { return w.chance(5, "a message comes twice") }
	w.lost = func() bool { return w.chance(50, "a hint is lost") }
	w.deaf = func(string) bool { return w.chance(12, "a worker has left") }
	w.mute = func(string) bool { return w.chance(10, "a poll that moves is lost") }
	w.lossy = func(*table.Call) (bool, bool) {
		if w.chance(120, "a call is lost") {
			return true, false
		}
		lost := w.chance(120, "the outcome of a call is lost")
		return lost, true
	}
	w.late = func() time.Duration {
		if w.chance(30, "a verdict or a call is late") {
			return time.Duration(w.r.IntN(2000)) * time.Millisecond
		}
		return 0
	}
}

// heedIn is how long after its last change a limit is heeded: what had begun before is over, or counted.
const heedIn = 10 * time.Second

// changes notes that a limit comes or goes, or is in shadow, or no more.
func (w *world) changes(key string) {
	w.changed[key] = true
	w.changedAt[key] = w.now
}

// checkBooked: history has let an attempt start, which no limit forbids that has not changed recently.
func (w *world) checkBooked(name string) {
	key, group, ok := strings.Cut(name, "*=")
	if ok {
		key += "*"
	}
	most := w.limits[key]
	if at, changed := w.changedAt[key]; most == 0 || w.shadow[key] && !ok || changed && w.now-at < heedIn {
		return
	}
	if own := w.groupLimits[group]; ok && own > 0 {
		most = own
	}
	if w.booked++; w.running[name] > most {
		w.t.Errorf("I8: at %v %d attempts of %s run, %d may", w.now, w.running[name], name, most)
	}
}

// checkFree: where nothing runs, the tables count no slot as used, of no limit and no group of one.
func (w *world) checkFree() {
	w.t.Helper()
	for _, name := range []string{"d", "e"} {
		c := table.Call{Domain: name, Shard: w.shards, Shards: w.shards, Seq: table.Seq{Epoch: 1, Call: 1}}
		c.Epoch = w.tables.Open(name, w.shards, "the end").Epoch
		for _, l := range w.Limits(name) {
			if l.Rate.EveryUS > 0 {
				continue
			}
			if !l.PerGroup {
				c.Stances = append(c.Stances, table.Stance{Ref: l.Ref, Max: l.Max})
				continue
			}
			c.Stances = append(c.Stances, table.Stance{Ref: l.Ref, PerGroup: table.PerGroup{Count: 1}})
			of, groups := len(c.Stances), map[string]bool{}
			for _, t := range w.sorted() {
				if t.group != "" && !groups[t.group] {
					groups[t.group] = true
					c.Stances = append(c.Stances, table.Stance{Ref: l.Ref.Of(t.group), Max: l.Max, Of: of})
				}
			}
		}
		out := w.tables.Do(c, epochMS*1000+w.now.Microseconds())
		if out.Lost || out.Overtaken {
			w.t.Fatalf("the tables were not asked: %+v", out)
		}
		for i, st := range out.Limits {
			w.freed++
			if st.Used > 0 {
				w.t.Errorf("I8: nothing runs, and %d slots of %s are used", st.Used, c.Stances[i].Ref)
			}
		}
	}
}

// TestI8_FaultsLeakNoSlotAndOverbookNone makes storms until so many faults have happened, with limits of all levels, of groups, rates, and
// limits in shadow. By history's own count no attempt starts for which a limit has no slot, and in the end every slot is free.
//
//	go test ./services/matching/internal/core/match -run TestI8_FaultsLeak -match.faults 100000 -timeout 2h -v
func TestI8_FaultsLeakNoSlotAndOverbookNone(t *testing.T) {
	want, all, kinds := *faultsFlag, faults{}, map[string]bool{}
	if testkit.Quick() {
		want = min(want, 200)
	}
	seeds, granted, booked, freed := uint64(0), 0, 0, 0
	for seed := uint64(1000); all.sum() < want && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := randomRun(t, seed)
			for kind, n := range w.faults {
				all[kind] += n
				kinds[kind] = true
			}
			seeds++
			granted, booked, freed = granted+w.grantedN, booked+w.booked, freed+w.freed
		})
	}
	t.Logf("%d faults in %d storms; %d attempts started, %d times below a limit that was checked, %d limits were free in the end\n%v",
		all.sum(), seeds, granted, booked, freed, all)
	if booked == 0 || freed == 0 || want >= 3000 && len(kinds) < 12 {
		t.Errorf("%d kinds of faults happened, of 14", len(kinds))
	}
}

// A release that is lost is found when its attempt must be over, though its limit has slots left and no one waits for one; before, history
// is not asked.
func TestI8_ALostReleaseIsFoundWhenItsAttemptMustBeOver(t *testing.T) {
	for _, name := range []string{"d/a", "d/a*"} {
		w, o := levels(t, 2, map[string]int{name: 3})
		w.group = func() string { return "g" }
		w.ready("d", "l0", "a", 1, 1)
		w.serve("l0")
		testkit.MustEqual(t, fmt.Sprintf("%s: run", name), w.running["d/a"], 1)
		w.lost = func() bool { return true }
		w.finishAll()
		asked := len(w.asked)
		w.run(50 * time.Second) // of 60
		if len(w.asked) != asked {
			t.Errorf("%s: history is asked %d times before the attempt must be over", name, len(w.asked)-asked)
		}
		w.run(3 * time.Minute)
		testkit.Equal(t, fmt.Sprintf("%s: slots were found", name), w.counts.Audited, 1)
		w.run(2 * time.Minute)
		checkEmpty(t, o.s)
		w.checkFree()
	}
}
