package distribution

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var t0 = time.UnixMilli(1_000_000)

func pick(t *testing.T, b *Balancer, now time.Time, tasks int, tie uint64) int {
	t.Helper()
	p, ok := b.Pick(now, tasks, tie)
	if !ok {
		t.Fatal("no partition")
	}
	return p
}

// Seed 003, with requests as large as the stay: five over two partitions end up three and two.
func TestWholeRequestsGoWhereTheFewestAreQueued(t *testing.T) {
	b := New(2)
	var got [2]int
	for range 5 {
		got[pick(t, b, t0, StayTasks, 0)]++
	}
	testkit.Equal(t, "dealt", got, [2]int{3, 2})
}

func TestReportsReplaceWhatWasSentSince(t *testing.T) {
	b := New(2)
	b.Report(0, 0, 0, t0)
	b.Report(1, 0, 3, t0) // 3 messages, taken for 300 tasks
	for queued := range 2 {
		if p := pick(t, b, t0, 700, 0); p != 0 {
			t.Fatalf("%d queued against 300: got %d", queued*700, p)
		}
	}
	testkit.MustEqual(t, "1400 queued against 300: got", pick(t, b, t0, 1, 0), 1)
	b.Report(0, 0, 0, t0) // read and finished meanwhile
	b.Report(1, StayTasks, 0, t0)
	testkit.MustEqual(t, "nothing queued at 0: got", pick(t, b, t0, 1, 0), 0)
}

// Single tasks of one moment meet in one partition, and yet all get their share.
func TestSmallRequestsStayTogether(t *testing.T) {
	b, changes, got := New(4), 0, [4]int{}
	for p := range got {
		b.Report(p, 0, 0, t0)
	}
	last := -1
	for tie := range uint64(40_000) {
		p := pick(t, b, t0, 1, tie)
		if p != last {
			changes++
		}
		last = p
		got[p]++
	}
	if changes > 40_000/StayTasks+4 || slices.Min(got[:]) < 10_000-2*StayTasks {
		t.Errorf("%d changes, dealt %v", changes, got)
	}
}

// A partition whose owner is silent, such as during a takeover, gets its share and no more.
func TestNobodyStaysWithoutAnOwner(t *testing.T) {
	b := New(2)
	b.Report(0, 0, 0, t0)
	b.Report(1, 10, 0, t0)
	for range 100 { // more than at 1
		testkit.MustEqual(t, "got", pick(t, b, t0.Add(StayReported), 1, 0), 0)
	}
	silent := t0.Add(StayReported + 1)
	testkit.MustEqual(t, "got which is silent", pick(t, b, silent, 1, 0), 1)
}

func TestTieSpreads(t *testing.T) {
	seen := map[int]bool{}
	for tie := range uint64(4) {
		seen[pick(t, New(4), t0, 1, tie)] = true
	}
	if len(seen) != 4 {
		t.Errorf("only %v were chosen", seen)
	}
}

// model is the balancer's promises, kept without its economy.
type model struct {
	b       *Balancer
	now     time.Time
	queued  []int64
	failed  []time.Time // zero = healthy
	wait    []time.Duration
	probing []bool
	// reported is when.
	reported []time.Time
}

func (m *model) mayProbe(p int) bool {
	alone := m.wait[p]
	if !slices.ContainsFunc(m.failed, time.Time.IsZero) {
		alone = SetAsideMin
	}
	return !m.probing[p] && !m.now.Before(m.failed[p].Add(alone))
}

func (m *model) partition(t *rapid.T) int { return rapid.IntRange(0, len(m.queued)-1).Draw(t, "p") }

func (m *model) pick(t *rapid.T) {
	tasks := rapid.IntRange(1, 1000).Draw(t, "tasks")
	p, ok := m.b.Pick(m.now, tasks, rapid.Uint64().Draw(t, "tie"))
	if !ok {
		for i := range m.queued {
			if m.failed[i].IsZero() || m.mayProbe(i) {
				t.Fatalf("partition %d was free to choose", i)
			}
		}
		return
	}
	if !m.failed[p].IsZero() {
		if !m.mayProbe(p) {
			t.Fatalf("partition %d is set aside", p)
		}
		m.probing[p] = true
	} else {
		for i := range m.queued {
			stay := int64(0)
			if m.now.Sub(m.reported[p]) <= StayReported {
				stay = StayTasks - 1
			}
			if m.failed[i].IsZero() && m.queued[i]+stay < m.queued[p] {
				t.Fatalf("%d has %d queued, %d has %d", i, m.queued[i], p, m.queued[p])
			}
		}
	}
	m.queued[p] += int64(tasks)
}

func (m *model) fail(t *rapid.T) {
	p := m.partition(t)
	m.b.Failed(p, 0, m.now)
	if m.failed[p].IsZero() || m.probing[p] {
		m.failed[p] = m.now
		m.wait[p] = min(max(SetAsideMin, 2*m.wait[p]), SetAsideMax)
	}
	m.probing[p] = false
}

func (m *model) giveBack(t *rapid.T) {
	p := m.partition(t)
	tasks := rapid.Int64Range(0, m.b.partitions[p].sent).Draw(t, "tasks")
	m.b.Returned(p, int(tasks))
	m.queued[p] -= tasks
	m.probing[p] = false
}

func (m *model) check(t *rapid.T) {
	for i := range m.queued {
		if m.b.Healthy(i) != (m.failed[i].IsZero() || m.probing[i]) {
			t.Fatalf("health of %d", i)
		}
		if m.b.partitions[i].queued() != m.queued[i] {
			t.Fatalf("%d counts %d, the model %d", i, m.b.partitions[i].queued(), m.queued[i])
		}
	}
}

// Any sequence of calls keeps the promises of the package comment.
func TestBalancerPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "partitions")
		m := &model{
			b: New(n), now: t0,
			queued: make([]int64, n), failed: make([]time.Time, n), wait: make([]time.Duration, n), probing: make([]bool, n), reported: make([]time.Time, n),
		}
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.Int64Range(0, int64(SetAsideMax)).Draw(t, "by")))
			},
			"pick":     m.pick,
			"failed":   m.fail,
			"returned": m.giveBack,
			"report": func(t *rapid.T) {
				p, active := m.partition(t), rapid.Int64Range(0, 10_000).Draw(t, "active")
				m.b.Report(p, active, 0, m.now)
				m.queued[p], m.reported[p] = active, m.now
			},
			"stored": func(t *rapid.T) {
				p := m.partition(t)
				m.b.Stored(p)
				m.failed[p], m.probing[p], m.wait[p] = time.Time{}, false, 0
			},
			"": m.check,
		})
	})
}

// TestSeed003_TheDocumentsExample: requests of 50, 30, 100 and then of 20, 100, 100 items over four partitions. Partitions
// that differ by less than StayTasks count as equal if their owners report, so the second run has each item a hundredfold.
func TestSeed003_TheDocumentsExample(t *testing.T) {
	for _, items := range []int{1, 100} {
		b, got := New(4), [4]int{}
		if items > 1 {
			for p := range got {
				b.Report(p, 0, 0, t0)
			}
		}
		for i, items := range []int{50 * items, 30 * items, 100 * items, 20 * items, 100 * items, 100 * items} {
			got[pick(t, b, t0, items, uint64(i%4))] += items
		}
		testkit.Equal(t, "dealt", got, [4]int{50 * items, 130 * items, 100 * items, 120 * items})
		testkit.Equal(t, "the next goes where the fewest are", pick(t, b, t0, items, 2), 0)
	}
}
