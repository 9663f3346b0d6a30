package letterlimit

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// memory is dead letters by domain, by when they were stored. A call deletes two at most.
type memory struct {
	mu      sync.Mutex
	letters map[string][]time.Time
	fail    bool
	calls   int
}

func (m *memory) delete(domain string, n int) (deleted int64, more bool, err error) {
	m.calls++
	if m.fail {
		return 0, true, errors.New("no answer")
	}
	deleted = int64(min(n, 2))
	m.letters[domain] = m.letters[domain][deleted:]
	return deleted, n > 2, nil
}

func (m *memory) DeleteBefore(_ context.Context, domain string, at time.Time) (int64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := 0
	for _, l := range m.letters[domain] {
		if l.Before(at) {
			old++
		}
	}
	return m.delete(domain, old)
}

func (m *memory) DeleteBeyond(_ context.Context, domain string, keep int64) (int64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.delete(domain, max(0, len(m.letters[domain])-int(keep)))
}

func (m *memory) die(domain string, n int, ago time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		m.letters[domain] = append(m.letters[domain], time.Now().Add(-ago))
	}
}

func (m *memory) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *memory) want(t *testing.T, domain string, want int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := len(m.letters[domain]); got != want {
		t.Errorf("%s has %d letters, want %d", domain, got, want)
	}
}

// deleters runs those of all partitions.
func deleters(t *testing.T, partitions int, m *memory, domains ...*yardv1.Domain) *telemetry.Metrics {
	metrics, err := telemetry.NewMetrics()
	testkit.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for p := range partitions {
		d := &Deleter{
			Partition: p, Partitions: partitions, Every: 30 * time.Second, Domains: func() []*yardv1.Domain { return domains }, Store: m, Now: time.Now,
			Log: slog.New(slog.DiscardHandler), TooMany: metrics.Counter(signals.DeadLettersDeleted, signals.ReasonNumber), TooOld: metrics.Counter(signals.DeadLettersDeleted, signals.ReasonAge),
		}
		running.Go(func() {
			testkit.Check(t, d.Run(ctx))
		})
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return metrics
}

func TestLimitsHoldWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{letters: map[string][]time.Time{}}
		for _, domain := range []string{"number", "age", "both", "none"} {
			m.die(domain, 10, 2*time.Hour)
			m.die(domain, 10, 0)
		}
		deleters(t, 4, m, &yardv1.Domain{Name: "number", DeadLettersMax: 15}, &yardv1.Domain{Name: "age", DeadLettersMaxAgeMs: time.Hour.Milliseconds()},
			&yardv1.Domain{Name: "both", DeadLettersMax: 4, DeadLettersMaxAgeMs: time.Hour.Milliseconds()}, &yardv1.Domain{Name: "none"})
		synctest.Wait()
		for domain, want := range map[string]int{"number": 15, "age": 10, "both": 4, "none": 20} { // at once, by a new owner
			m.want(t, domain, want)
		}
		m.die("number", 5, 0)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		m.want(t, "number", 15)
		time.Sleep(time.Hour + time.Minute)
		m.want(t, "age", 0)
		m.set(func() { m.fail = true })
		m.die("number", 5, 0)
		time.Sleep(time.Hour)
		m.want(t, "number", 20)
		m.set(func() { m.fail = false })
		time.Sleep(31 * time.Second)
		m.want(t, "number", 15)
	})
}

func TestATurnIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{letters: map[string][]time.Time{}}
		m.die("shop", 100, 0)
		m.die("bank", 3, 0)
		metrics := deleters(t, 1, m, &yardv1.Domain{Name: "shop", DeadLettersMax: 1}, &yardv1.Domain{Name: "bank", DeadLettersMax: 1})
		synctest.Wait()
		m.want(t, "shop", 100-2*callsMax)
		m.want(t, "bank", 1)
		values, err := metrics.Values()
		name := `yardmaster_history_deadletters_deleted_total{reason="number"}`
		if err != nil || values[name] != 2*callsMax+2 {
			t.Errorf("counted are %v, of %v: %v", values[name], values, err)
		}
		m.set(func() { m.fail, m.calls = true, 0 })
		time.Sleep(30 * time.Second)
		synctest.Wait()
		m.set(func() {
			if m.calls != 2 { // one for each domain
				t.Errorf("a store that fails is asked %d times in a turn", m.calls)
			}
		})
	})
}

// TestADomainHasOneHome, whatever the number of partitions, and homes are spread.
func TestADomainHasOneHome(t *testing.T) {
	for _, n := range []int{1, 4, 7} {
		var homes []int
		for _, domain := range []string{"shop", "bank", "mail", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"} {
			p := home(domain, n)
			if p < 0 || p >= n {
				t.Fatalf("the home of %s is %d of %d", domain, p, n)
			}
			if !slices.Contains(homes, p) {
				homes = append(homes, p)
			}
		}
		if len(homes) < (n+1)/2 {
			t.Errorf("of %d partitions %v are homes", n, homes)
		}
	}
}
