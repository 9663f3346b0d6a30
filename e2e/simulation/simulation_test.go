package simulation

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// seedsEnv is how many seeds to try, seedEnv the first of them.
	seedsEnv = "YARD_SIM_SEEDS"
	seedEnv  = "YARD_SIM_SEED"
	// shrinkFor bounds the shrinking of a failing run.
	shrinkFor = 20 * time.Second
)

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSimulation runs seed after seed and stops at the first that violates an invariant.
func TestSimulation(t *testing.T) {
	first, n := setting(t, seedEnv, 1), setting(t, seedsEnv, uint64(testkit.Rounds(t, 100, 6)))
	if os.Getenv(seedEnv) != "" && os.Getenv(seedsEnv) == "" {
		n = 1
	}
	if p, broken := firstBroken(first, n); broken != "" {
		report(t, p, broken)
	}
}

// firstBroken runs n seeds on all processors and returns the first that violates an invariant.
func firstBroken(first, n uint64) (p plan, broken string) {
	var next, end atomic.Uint64
	next.Store(first)
	end.Store(first + n)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := next.Add(1) - 1; seed < end.Load(); seed = next.Add(1) - 1 {
				why := newWorld(planOf(seed), false).run()
				if why == "" {
					continue
				}
				mu.Lock()
				if seed < end.Load() {
					end.Store(seed)
					p, broken = planOf(seed), why
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return p, broken
}

// TestRunIsRepeatable runs plans twice: a run depends on nothing but its plan.
func TestRunIsRepeatable(t *testing.T) {
	testkit.Slow(t, "simulates many runs")
	for seed := range uint64(testkit.Rounds(t, 10, 1)) {
		first, second := newWorld(planOf(seed), true), newWorld(planOf(seed), true)
		first.run()
		second.run()
		if !slices.Equal(first.lines, second.lines) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// TestFloodsLag: what the runs are to show happens in most of those that have floods, and of those whose domain is over its rate.
func TestFloodsLag(t *testing.T) {
	testkit.Slow(t, "simulates many runs")
	for what, shows := range map[string]func(p plan) bool{
		"floods":    func(p plan) bool { return p.has(floods) },
		"low rates": func(p plan) bool { return p.has(lowRates) && !p.has(floods) },
	} {
		runs, lagged := 0, 0
		for seed := range uint64(16) {
			if p := planOf(seed); shows(p) {
				w := newWorld(p, false)
				w.run()
				if runs++; w.lagged || len(w.parts) > 1 && w.parts[1].lagged {
					lagged++
				}
			}
		}
		if lagged*2 < runs || runs == 0 {
			t.Errorf("%s: a domain lagged in %d of %d runs", what, lagged, runs)
		}
	}
}

// report makes a failing run small and prints it.
func report(t *testing.T, p plan, broken string) {
	t.Helper()
	t.Errorf("%v\n  %s\n  again: %s=%d go test -run TestSimulation ./e2e/simulation", p, broken, seedEnv, p.seed)
	small := shrink(p, broken)
	w := newWorld(small, true)
	broken = w.run()
	t.Logf("the smallest run found: %v\n  %s\n%s", small, broken, strings.Join(w.lines, "\n"))
}

// sameKind tells whether two violations are of one invariant, and end alike.
func sameKind(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	return len(x) > 0 && len(y) > 0 && x[0] == y[0] && x[len(x)-1] == y[len(y)-1]
}

// shrink makes a plan smaller as long as it still fails in the same way.
func shrink(p plan, broken string) plan {
	end := time.Now().Add(shrinkFor)
	for progress := true; progress; {
		progress = false
		for _, smaller := range smallerPlans(p) {
			if time.Now().After(end) {
				return p
			}
			if sameKind(newWorld(smaller, false).run(), broken) {
				p, progress = smaller, true
				break
			}
		}
	}
	return p
}

func smallerPlans(p plan) (all []plan) {
	for _, tasks := range []int{1, p.tasks / 4, p.tasks / 2, p.tasks * 3 / 4, p.tasks - 1} {
		if tasks > 0 && tasks < p.tasks {
			s := p
			s.tasks = tasks
			all = append(all, s)
		}
	}
	if p.length > 2*time.Second {
		s := p
		s.length = p.length * 3 / 4
		all = append(all, s)
	}
	for f := faults(1); f < faultsEnd; f <<= 1 {
		if p.has(f) {
			s := p
			s.faults &^= f
			all = append(all, s)
		}
	}
	return all
}
