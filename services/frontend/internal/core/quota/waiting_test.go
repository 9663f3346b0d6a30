package quota

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestWhatWaitsIsTheSumOfTheLastReports: a later one of the same owner takes the place of its last one, and one that is old counts no more.
func TestWhatWaitsIsTheSumOfTheLastReports(t *testing.T) {
	w := NewWaiting()
	want := func(what string, now time.Duration, tasks, bytes int64) {
		t.Helper()
		testkit.Equal(t, what, w.Count("shop", now), Use{Tasks: tasks, Bytes: bytes})
		testkit.Equal(t, what+", of all", w.All(now)["shop"], Use{Tasks: tasks, Bytes: bytes})
	}
	want("before a report", 0, 0, 0)
	w.Report(Source{Partition: 1}, map[string]Use{"shop": {5, 500}, "bank": {7, 7}}, 0)
	w.Report(Source{Partition: 1, Timer: true}, map[string]Use{"shop": {2, 20}}, time.Second)
	w.Report(Source{Partition: 2}, map[string]Use{"shop": {1, 10}}, time.Second)
	want("of three owners", time.Second, 8, 530)
	w.Report(Source{Partition: 2}, nil, 1500*time.Millisecond)
	want("after one has none any more", 1500*time.Millisecond, 7, 520)
	want("after one is silent", 2*time.Second, 2, 20)
	w.Report(Source{Partition: 2}, map[string]Use{"shop": {1, 10}}, 10*time.Second)
	want("after the others are, too", 10*time.Second, 1, 10)
	testkit.Equal(t, "reports kept", len(w.from), 1)
}

// TestWhatIsFreshCountsForASecondAtMost and for half of one at least; less what is taken back.
func TestWhatIsFreshCountsForASecondAtMost(t *testing.T) {
	b := newBook()
	take := func(tasks int64, at time.Duration) { b.Take("shop", Use{}, Use{Tasks: tasks, Bytes: 10 * tasks}, at) }
	want := func(at time.Duration, tasks int64) {
		t.Helper()
		testkit.Equal(t, "fresh at "+at.String(), b.Fresh("shop", at), Use{Tasks: tasks, Bytes: 10 * tasks})
	}
	want(0, 0)
	take(3, 0)
	take(4, 499*time.Millisecond)
	want(999*time.Millisecond, 7)
	b.Heard("shop", Use{}, Use{Tasks: 5, Bytes: 50}, 999*time.Millisecond)
	want(999*time.Millisecond, 12)
	want(time.Second, 5)
	b.Return("shop", Use{Tasks: 2, Bytes: 20}, 1100*time.Millisecond) // of the last half second, of which all is kept
	want(1100*time.Millisecond, 5)
	take(9, 1200*time.Millisecond)
	b.Return("shop", Use{Tasks: 2, Bytes: 20}, 1300*time.Millisecond)
	want(1300*time.Millisecond, 12)
	want(1500*time.Millisecond, 7)
	want(2*time.Second, 0)
}
