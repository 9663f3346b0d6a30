package due

import (
	"fmt"
	"maps"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// overdue is a store in which tasks of domains lie, all due at one instant, in the order of the calls of park.
type overdue struct {
	messages []Message
	tasks    int
}

func (o *overdue) park(domain string, n int) { o.parkDue(domain, n, 1000) }

func (o *overdue) parkDue(domain string, n int, dueMS int64) Message {
	m := Message{Seq: uint64(len(o.messages) + 1)}
	for range n {
		o.tasks++
		m.Tasks = append(m.Tasks, Task{ID: testID(o.tasks), DueMS: dueMS, Parkings: 1, Bytes: 100, Group: Group{Domain: domain, Tasklist: "x", Priority: 3}})
	}
	o.messages = append(o.messages, m)
	return m
}

// chunkOf are the limits of the tests of turns.
func chunkOf(tasks int) Limits {
	return Limits{Tasks: tasks, Bytes: 100 << 20, Messages: 999, MessageTasks: 1000, MessageBytes: 1 << 20}
}

// fireOne fires a chunk and counts it by domain.
func fireOne(tb testing.TB, table *Table, nowMS int64, limits Limits) map[string]int {
	tb.Helper()
	chunk, ok := table.NextChunk(nowMS, limits)
	if !ok {
		return nil
	}
	byDomain := map[string]int{}
	for _, m := range chunk.Messages {
		byDomain[m.Domain] += len(m.Records)
	}
	table.Commit(nowMS, 0)
	table.check(tb)
	return byDomain
}

// apartIn is how many domains are apart.
func apartIn(table *Table) int { return table.lines.cursor.lines() - 1 }

// TestI11_OverdueTasksOfAFloodFireInTurn: few tasks of ten domains lie behind fifty thousand of another one, all are due at one instant, and
// the few are fired with the next chunk after the first one.
func TestI11_OverdueTasksOfAFloodFireInTurn(t *testing.T) {
	var o overdue
	for range 50 {
		o.park("flood", 1000)
	}
	for n := range 10 {
		o.park(fmt.Sprint("quiet", n), 100)
	}
	table := newTable(t, o.messages...)
	testkit.Equal(t, "the first chunk", fireOne(t, table, 2000, chunkOf(5000)), map[string]int{"flood": 5000})
	second := fireOne(t, table, 2000, chunkOf(5000))
	for n := range 10 {
		testkit.Equal(t, fmt.Sprint("quiet", n), second[fmt.Sprint("quiet", n)], 100)
	}
	testkit.Equal(t, "the flood has the rest", second["flood"], 4000)
	fired := 10_000
	for got := fireOne(t, table, 2000, chunkOf(5000)); got != nil; got = fireOne(t, table, 2000, chunkOf(5000)) {
		fired += got["flood"]
	}
	testkit.Equal(t, "fired", fired, o.tasks)
	testkit.Equal(t, "apart", apartIn(table), 0)
}

// TestI11_WhatFallsDueDuringAFloodFiresInTurn: it does not wait for the round of the flood.
func TestI11_WhatFallsDueDuringAFloodFiresInTurn(t *testing.T) {
	var o overdue
	o.park("flood", 20_000)
	o.parkDue("quiet", 3, 2500)
	table := newTable(t, o.messages...)
	fireOne(t, table, 2000, chunkOf(1000))
	testkit.Equal(t, "before quiet is due", fireOne(t, table, 2499, chunkOf(1000)), map[string]int{"flood": 1000})
	fireOne(t, table, 2500, chunkOf(1000))
	testkit.Equal(t, "quiet is due", fireOne(t, table, 2500, chunkOf(1000)), map[string]int{"flood": 997, "quiet": 3})
	table.Load(o.parkDue("quiet", 2, 1500)) // written after it was due
	testkit.Equal(t, "quiet was late", fireOne(t, table, 2600, chunkOf(1000)), map[string]int{"flood": 998, "quiet": 2})
}

// TestI11_WhatIsWrittenLateHasItsTurn: the round of the flood, which is alone, began before.
func TestI11_WhatIsWrittenLateHasItsTurn(t *testing.T) {
	var o overdue
	o.park("flood", 20_000)
	table := newTable(t, o.messages...)
	fireOne(t, table, 2000, chunkOf(1000))
	table.Load(o.parkDue("quiet", 3, 1500))
	fireOne(t, table, 2000, chunkOf(1000))
	testkit.Equal(t, "quiet", fireOne(t, table, 2000, chunkOf(1000)), map[string]int{"flood": 997, "quiet": 3})
}

// TestI11_FloodsTakeTurnsByWeight, and half of each chunk is for those who do not flood.
func TestI11_FloodsTakeTurnsByWeight(t *testing.T) {
	var o overdue
	for _, domain := range []string{"heavy", "light"} {
		o.park(domain, 100*turnTasks)
	}
	for n := range 100 {
		o.park(fmt.Sprint("quiet", n), turnTasks)
	}
	table := New(Config{Weight: func(domain string) int { return map[string]int{"heavy": 3}[domain] }})
	table.Resume(Cursor{}, 1, 0)
	for _, m := range o.messages {
		table.Load(m)
	}
	table.Loaded()
	for range 2 {
		fireOne(t, table, 2000, chunkOf(16*turnTasks)) // each has one of the two apart
	}
	count := map[string]int{}
	for range 3 {
		for domain, n := range fireOne(t, table, 2000, chunkOf(16*turnTasks)) {
			count[domain[:5]] += n / turnTasks
		}
	}
	testkit.Equal(t, "turns", count, map[string]int{"heavy": 18, "light": 6, "quiet": 24})
}

// TestI11_ADomainThatNobodyWaitsForIsNotApart: it fires in the order of keys, and has all of each chunk.
func TestI11_ADomainThatNobodyWaitsForIsNotApart(t *testing.T) {
	var o overdue
	o.park("flood", 1000)
	o.parkDue("quiet", 1, 3000)
	table := newTable(t, o.messages...)
	for range 10 {
		testkit.Equal(t, "fired", fireOne(t, table, 2000, chunkOf(100)), map[string]int{"flood": 100})
		testkit.Equal(t, "apart", apartIn(table), 0)
	}
}

// TestI11_ManySmallDomainsAreNotApart: a domain is apart if it has a sixteenth of a chunk.
func TestI11_ManySmallDomainsAreNotApart(t *testing.T) {
	var o overdue
	for n := range 400 {
		o.park(fmt.Sprint("quiet", n%200), 5)
	}
	table := newTable(t, o.messages...)
	fireOne(t, table, 2000, chunkOf(320))
	testkit.Equal(t, "apart", apartIn(table), 0)
}

// TestMoreFloodsThanMayBeApart: the others of them fire in the order of keys, and all fire once.
func TestMoreFloodsThanMayBeApart(t *testing.T) {
	var o overdue
	for n := range ApartMost + 4 {
		o.park(fmt.Sprint("flood", n), 400)
	}
	table, fired, most := newTable(t, o.messages...), map[string]int{}, 0
	for got := fireOne(t, table, 2000, chunkOf(100)); got != nil; got = fireOne(t, table, 2000, chunkOf(100)) {
		for domain, n := range got {
			fired[domain] += n
		}
		most = max(most, apartIn(table))
	}
	testkit.Equal(t, "apart", most, ApartMost)
	testkit.Equal(t, "domains", len(fired), ApartMost+4)
	for domain, n := range fired {
		testkit.Equal(t, domain, n, 400)
	}
}

// TestI10_TheNextOwnerGoesOnWithDomainsApart: from the cursor of any chunk it fires what is left, each once.
func TestI10_TheNextOwnerGoesOnWithDomainsApart(t *testing.T) {
	var o overdue
	for _, domain := range []string{"flood", "other", "quiet"} {
		o.park(domain, 300)
	}
	table, fired := newTable(t, o.messages...), map[ids.TaskID]int{}
	for range 7 {
		chunk, _ := table.NextChunk(2000, chunkOf(50))
		for _, m := range chunk.Messages {
			for _, r := range m.Records {
				fired[r.ID]++
			}
		}
		table.Commit(2000, 0)
		seen := maps.Clone(fired)
		for _, id := range fire(takeOver(table.Cursor(), 2000, o.messages...), 2000) {
			seen[id]++
		}
		testkit.Equal(t, "fired in all", len(seen), o.tasks)
		for id, n := range seen {
			testkit.Equal(t, id.String(), n, 1)
		}
	}
}

// TestI10_ALineInARoundIsNotExtended: the shared line is in a round of a clock ahead, and a task came too late for that. The line of the
// domain that is apart knows of the task, and says nothing about those of others.
func TestI10_ALineInARoundIsNotExtended(t *testing.T) {
	shared := Line{Base: Mark{500, 1}, Round: Mark{3000, 1}, Last: Key{600, 1, 0}}
	c := Cursor{Line: shared, Apart: [ApartMost]Apart{{Domain: "apart", Line: Line{Base: Mark{2000, 2}}}}}
	var o overdue
	o.parkDue("quiet", 1, 2900) // of the round
	o.parkDue("quiet", 1, 1000) // late
	table := takeOver(c, 2100, o.messages...)
	table.check(t)
	next := takeOver(table.Cursor(), 3000, o.messages...)
	testkit.Equal(t, "fired", fire(next, 3000), []ids.TaskID{testID(1), testID(2)})
}

// TestR23_ADomainIsNotApartForAClockThatWasAhead: the domain fired by a clock an hour ahead, which then went back, and has nothing more to fire. The line that
// it was apart from says the same of its tasks once it has come to that hour.
func TestR23_ADomainIsNotApartForAClockThatWasAhead(t *testing.T) {
	const hour = int64(3_600_000)
	var o overdue
	o.park("flood", 400)
	o.park("quiet", 5)
	table := newTable(t, o.messages...)
	fireOne(t, table, hour, chunkOf(100))
	fireOne(t, table, hour, chunkOf(100))
	table.Load(o.parkDue("flood", 800, 1500)) // so it has something due when its first round ends
	now := hour
	for table.Cursor().Apart[0].Base == (Mark{}) {
		now++
		fireOne(t, table, now, chunkOf(100))
	}
	table.Load(o.parkDue("quiet", 1, 1500))
	for table.Cursor().Base.Seq < 4 { // the shared line's next round has ended, and the domain's has not
		now++
		fireOne(t, table, now, chunkOf(100))
	}
	for now = 2000; table.Len() > 0; now++ { // the clock is right again
		fireOne(t, table, now, chunkOf(100))
	}
	testkit.Equal(t, "before the hour the domain is apart", apartIn(table), 1)
	messages := append(o.messages, o.parkDue("quiet", 1, 2*hour))
	table.Load(messages[len(messages)-1])
	fireOne(t, table, 2*hour, chunkOf(100))
	testkit.Equal(t, "behind it", apartIn(table), 0)
	testkit.Equal(t, "the next owner fires again", len(fire(takeOver(table.Cursor(), 2*hour, messages...), 2*hour)), 0)
}

// TestI1_ALineWithSomethingDueDoesNotJoin: the shared line says of a task that waits in it that it was fired.
func TestI1_ALineWithSomethingDueDoesNotJoin(t *testing.T) {
	c := Cursor{Line: Line{Base: Mark{2000, 5}}, Apart: [ApartMost]Apart{{Domain: "apart", Line: Line{Base: Mark{1000, 1}}}}}
	var o overdue
	o.parkDue("quiet", 1, 500)
	o.parkDue("apart", 1, 1500)
	table := takeOver(c, 2100, o.messages...)
	table.check(t)
	next := takeOver(table.Cursor(), 2100, o.messages...)
	testkit.Equal(t, "fired", fire(next, 2100), []ids.TaskID{testID(2)})
}
