package due

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// afterDowntime is a store in which a domain floods ten minutes that are over at the fortieth one, and another domain has a task in the last of them.
func afterDowntime(tb testing.TB, dueMost int) (s *farStore, other ids.TaskID) {
	tb.Helper()
	const minuteTasks, number = 1000, 99_999
	all := []Message{message(1, 29*testMinute, number)}
	all[0].Tasks[0].Group.Domain = "b"
	for n := range 10 {
		all = append(all, message(uint64(n+2), int64(20+n)*testMinute, upFrom(n*minuteTasks, minuteTasks)...))
	}
	s = newFarStore(tb, 1500, all...)
	s.dueMost = dueMost
	return s, testID(number)
}

// I11: after a downtime domains take turns among all that is overdue, also if it is more than may be near of future tasks.
func TestI11_OverdueDomainsTakeTurns(t *testing.T) {
	const now = 40 * testMinute
	for name, begin := range map[string]int64{"the buckets come near later": 0, "the owner takes over after the downtime": now} {
		s, other := afterDowntime(t, 20_000)
		s.takeOver(Cursor{}, 1500, begin)
		before := 0
		for found := false; !found; {
			s.approach(now)
			chunk, ok := s.table.NextChunk(now, Limits{Tasks: 100, Bytes: 1 << 20, Messages: 999, MessageTasks: 100, MessageBytes: 1 << 20})
			if !ok {
				t.Fatalf("%s: the task of the other domain is not fired", name)
			}
			for _, m := range chunk.Messages {
				found = found || slices.ContainsFunc(m.Records, func(r Ref) bool { return r.ID == other })
			}
			before += chunk.Tasks
			s.table.Commit(now, 0)
		}
		if before > 1000 {
			t.Errorf("%s: %d tasks are fired before the task of the other domain", name, before)
		}
	}
}

// TestOverdueTasksThatAreNearAreBounded by a bound of their own. Future tasks beside them have the smaller one.
func TestOverdueTasksThatAreNearAreBounded(t *testing.T) {
	const now = 40 * testMinute
	for name, c := range map[string]struct{ dueMost, least, most int }{"all fit": {12_000, 10_001, 10_001}, "a few too many": {9000, 4000, 9000}, "far too many": {4000, 1500, 4000}} {
		s, _ := afterDowntime(t, c.dueMost)
		for n := range 3 {
			s.messages = append(s.messages, message(uint64(12+n), int64(45+n)*testMinute, upFrom(20_000+1000*n, 1000)...))
		}
		s.takeOver(Cursor{}, 1500, now)
		s.approach(now)
		if near := s.table.Near(); near < c.least || near > c.most {
			t.Errorf("%s: %d are near", name, near)
		}
		testkit.Equal(t, name+", wait", s.table.Len(), 13_001)
		fired := 0
		for minute := int64(40); minute < 50; minute++ {
			for s.table.Len() > 0 {
				s.approach(minute * testMinute)
				n := len(fire(s.table, minute*testMinute))
				if fired += n; n == 0 {
					break
				}
			}
		}
		testkit.Equal(t, name+", fired at last", fired, 13_001)
	}
}
