package due

import (
	"fmt"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// later is message with another number of stays.
func later(m Message, parkings uint32) Message {
	for i := range m.Tasks {
		m.Tasks[i].Parkings = parkings
	}
	return m
}

func TestKeysGoByTimeThenMessageThenPlace(t *testing.T) {
	keys := []Key{{1, 5, 5}, {2, 1, 9}, {2, 2, 0}, {2, 2, 1}, {3, 0, 0}}
	for i, a := range keys {
		for j, b := range keys {
			if got := a.Compare(b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%v to %v: %d", a, b, got)
			}
		}
	}
}

func TestI10_ACursorCoversItsSpans(t *testing.T) {
	c := Line{Base: Mark{DueMS: 10, Seq: 5}, Round: Mark{DueMS: 20, Seq: 8}, Last: Key{DueMS: 15, Seq: 7, Index: 2}}
	for key, fired := range map[Key]bool{
		{10, 5, 9}: true, {11, 5, 0}: true, {10, 6, 0}: true, {10, 8, 0}: true, {10, 9, 0}: false,
		{15, 7, 2}: true, {15, 7, 3}: false, {15, 8, 0}: false, {16, 1, 0}: false, {14, 9, 0}: false,
	} {
		if c.fired(key) != fired {
			t.Errorf("%+v: fired %v", key, !fired)
		}
	}
	if (&Line{}).fired(Key{DueMS: 1, Seq: 1}) {
		t.Error("the empty cursor covers something")
	}
}

func TestAHigherStayReplacesALowerOne(t *testing.T) {
	table := newTable(t, later(message(1, 1000, 1, 2), 2))
	table.Load(later(message(2, 500, 1), 1))  // an older stay, late
	table.Load(later(message(3, 600, 2), 2))  // a copy
	table.Load(later(message(4, 3000, 1), 3)) // the next stay
	table.check(t)
	testkit.MustEqual(t, "wait", table.Len(), 2)
	if got := fire(table, 999); got != nil {
		t.Fatalf("fired %v", got)
	}
	testkit.MustEqual(t, "fired", fire(table, 1000), []ids.TaskID{testID(2)})
	testkit.MustEqual(t, "fired", fire(table, 3000), []ids.TaskID{testID(1)})
	table.check(t)
}

func TestAMessageSeenBeforeIsIgnored(t *testing.T) {
	table := newTable(t, message(2, 1000, 1))
	table.Load(message(2, 1000, 2))
	table.Load(message(1, 1000, 3))
	testkit.MustEqual(t, "wait", table.Len(), 1)
	table.Load(message(3, 1000, 4))
	testkit.MustEqual(t, "wait", table.Len(), 2)
}

func TestFindTellsWhereARecordIs(t *testing.T) {
	table := newTable(t, message(1, 1000, 1), message(7, testMinute+5, 2, 3))
	stay, status := table.Find(testID(3), "")
	want := Stay{
		Ref: Ref{Seq: 7, Index: 1, ID: testID(3)}, DueMS: testMinute + 5, Bucket: 1, Bytes: 10, Parkings: 1,
		Group: Group{Domain: "a", Tasklist: "x", Priority: 3},
	}
	if status != Waiting || stay != want {
		t.Fatalf("status %d, %+v, want %+v", status, stay, want)
	}
	chunk, _ := table.NextChunk(1000, wide)
	if stay, status := table.Find(testID(1), ""); status != Fired || stay != (Stay{}) || chunk.Tasks != 1 || !slices.Equal(chunk.Messages[0].DueMS, []int64{1000}) {
		t.Fatalf("status %d while it is being stored, %+v", status, stay)
	}
	table.Abort()
	have(t, table, map[int]Status{1: Waiting})
}

func TestALostRecordIsForgotten(t *testing.T) {
	table := newTable(t, message(1, 1000, 1, 2), message(2, 900, 3))
	table.Lose(testID(9))
	testkit.MustEqual(t, "wait when an unknown one was lost", table.Len(), 3)
	for range 2 {
		table.Lose(testID(1))
		table.Lose(testID(9))
	}
	have(t, table, map[int]Status{1: Unknown, 2: Waiting, 3: Waiting})
	if table.Len() != 2 || table.Counts().Waiting("a", "x") != 2 {
		t.Errorf("%d wait, %d in the tasklist", table.Len(), table.Counts().Waiting("a", "x"))
	}
	table.check(t)
}

func TestWaitingCountsByTasklistAndDomain(t *testing.T) {
	m := Message{Seq: 1}
	for i, g := range []Group{
		{Domain: "a", Tasklist: "x"},
		{Domain: "a", Tasklist: "y"},
		{Domain: "a", Tasklist: "y", Priority: 2},
		{Domain: "b", Tasklist: "x"},
	} {
		m.Tasks = append(m.Tasks, Task{ID: testID(i), DueMS: 1, Bytes: 10, Group: g})
	}
	table := newTable(t, m)
	ofA := slices.Values([]string{"a", "c"})
	testkit.Equal(t, "of wanted domains", fmt.Sprint(table.Counts().Domains(ofA)), "map[a:{3 30}]")
	for _, c := range []struct {
		domain, tasklist string
		want             int
	}{{"a", "x", 1}, {"a", "y", 2}, {"a", "", 3}, {"b", "", 1}, {"b", "y", 0}, {"c", "", 0}} {
		if got := table.Counts().Waiting(c.domain, c.tasklist); got != c.want {
			t.Errorf("%s/%s: %d, want %d", c.domain, c.tasklist, got, c.want)
		}
	}
	for _, c := range []struct {
		domain, after string
		limit         int
		want          []Count
	}{
		{"a", "", 9, []Count{{"x", 1}, {"y", 2}}},
		{"a", "", 1, []Count{{"x", 1}}},
		{"a", "w", 1, []Count{{"x", 1}}},
		{"a", "x", 9, []Count{{"y", 2}}},
		{"a", "y", 9, nil},
		{"b", "", 9, []Count{{"x", 1}}},
		{"c", "", 9, nil},
	} {
		if got := table.Counts().Tasklists(c.domain, c.after, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("%d of %s behind %q: %v, want %v", c.limit, c.domain, c.after, got, c.want)
		}
	}
	table.Lose(testID(0))
	testkit.Equal(t, "where one was lost", table.Counts().Tasklists("a", "", 9), []Count{{"y", 2}})
	testkit.Equal(t, "of wanted domains, where one was lost", fmt.Sprint(table.Counts().Domains(ofA)), "map[a:{2 20}]")
	fire(table, 1)
	testkit.Equal(t, "of wanted domains, where all were fired", len(table.Counts().Domains(ofA)), 0)
	if got := table.Counts().Waiting("a", ""); got != 0 || table.Counts().Tasklists("a", "", 9) != nil {
		t.Errorf("%d wait when all were fired", got)
	}
	table.check(t)
}

func TestScanGoesOnWhereItStopped(t *testing.T) {
	table := newTable(t, message(1, 1000, 1, 2, 3, 4))
	testkit.MustEqual(t, "slots", table.Slots(), 4)
	for _, c := range []struct {
		below uint32
		n     int
		saw   int
		next  uint32
	}{{4, 3, 3, 1}, {1, 3, 1, 0}, {4, 4, 4, 0}, {0, 1, 0, 0}} {
		saw := 0
		if next := table.Scan(c.below, c.n, func(Stay) { saw++ }); saw != c.saw || next != c.next {
			t.Errorf("%+v: saw %d, next %d", c, saw, next)
		}
	}
}

// TestARecordThatCannotBeReadIsPassedOver.
func TestARecordThatCannotBeReadIsPassedOver(t *testing.T) {
	m := message(1, 1000, 1)
	m.Tasks = append([]Task{{}}, m.Tasks...)
	table := newTable(t, m)
	if stay, status := table.Find(testID(1), ""); table.Len() != 1 || status != Waiting || stay.Index != 1 {
		t.Errorf("%d wait, task 1 is %+v", table.Len(), stay)
	}
}

// A round of which the last task is lost lets in what was written after it began.
func TestI10_ALossCanEndARound(t *testing.T) {
	table := newTable(t, message(1, 1000, 1, 2))
	table.NextChunk(5000, one)
	table.Commit(5000, 0)
	table.Load(message(2, 500, 3))
	table.Load(message(3, 400, 4))
	table.Lose(testID(4)) // before it could enter
	table.Load(message(4, 6000, 5))
	if cursor := table.Cursor(); cursor.Round != (Mark{5000, 1}) || cursor.Last != (Key{1000, 1, 0}) {
		t.Fatalf("%+v", cursor)
	}
	table.Lose(testID(2))
	table.check(t)
	if cursor := table.Cursor(); cursor.Base != (Mark{5000, 1}) || cursor.Round != (Mark{}) {
		t.Fatalf("%+v", cursor)
	}
	testkit.MustEqual(t, "fired", fire(table, 6000), []ids.TaskID{testID(3), testID(5)})
}

func TestTheTableStandsStillWhileAChunkIsStored(t *testing.T) {
	for name, change := range map[string]func(*Table){
		"load": func(table *Table) { table.Load(message(9, 1000, 9)) },
		"lose": func(table *Table) { table.Lose(testID(2)) },
		"take": func(table *Table) { table.NextChunk(1000, wide) },
	} {
		table := newTable(t, message(1, 1000, 1, 2))
		table.NextChunk(1000, wide)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			change(table)
		}()
	}
}

func TestAChunkKeepsItsLimits(t *testing.T) {
	table := newTable(t, message(1, 1000, 1, 2, 3, 4))
	const size = 10 + recordOverhead
	for _, c := range []struct {
		name     string
		limits   Limits
		tasks    int
		messages []int
	}{
		{"tasks", Limits{Tasks: 3, Bytes: 999, Messages: 9, MessageTasks: 9, MessageBytes: 999}, 3, []int{3}},
		{"bytes, exactly", Limits{Tasks: 9, Bytes: 2 * size, Messages: 9, MessageTasks: 9, MessageBytes: 999}, 2, []int{2}},
		{"bytes, one less", Limits{Tasks: 9, Bytes: 2*size - 1, Messages: 9, MessageTasks: 9, MessageBytes: 999}, 1, []int{1}},
		{"message bytes, exactly", Limits{Tasks: 9, Bytes: 999, Messages: 9, MessageTasks: 9, MessageBytes: 2 * size}, 4, []int{2, 2}},
		{"message bytes, one less", Limits{Tasks: 9, Bytes: 999, Messages: 9, MessageTasks: 9, MessageBytes: 2*size - 1}, 4, []int{1, 1, 1, 1}},
		{"message tasks", Limits{Tasks: 9, Bytes: 999, Messages: 9, MessageTasks: 3, MessageBytes: 999}, 4, []int{3, 1}},
		{"messages", Limits{Tasks: 9, Bytes: 999, Messages: 1, MessageTasks: 3, MessageBytes: 999}, 3, []int{3}},
		{"one too large", Limits{Tasks: 9, Bytes: 5, Messages: 2, MessageTasks: 9, MessageBytes: 5}, 1, []int{1}},
	} {
		chunk, ok := table.NextChunk(1000, c.limits)
		var records []int
		for _, m := range chunk.Messages {
			records = append(records, len(m.Records))
		}
		if !ok || chunk.Tasks != c.tasks || !slices.Equal(records, c.messages) {
			t.Errorf("%s: %d tasks in %v, want %d in %v", c.name, chunk.Tasks, records, c.tasks, c.messages)
		}
		table.Abort()
		table.check(t)
	}
}

func TestFiredStaysAreRememberedForATimeAndInNumber(t *testing.T) {
	all := newDomains(&slab{})
	known := newGroups(&all)
	group := known.take(Group{Domain: "a"})
	remember := func(most int) *recent {
		return newRecent(10, most, &known)
	}
	add := func(r *recent, n int, parkings uint32, atMS int64) {
		r.add(firedStay{id: testID(n), parkings: parkings, group: group, atMS: atMS})
	}
	r := remember(2)
	add(r, 1, 1, 0)
	add(r, 2, 1, 10)
	if !r.has(testID(1), 1) || !r.has(testID(1), 0) || r.has(testID(1), 2) {
		t.Error("at its last instant a stay is not known, or a later one is")
	}
	add(r, 2, 2, 11)
	if r.has(testID(1), 1) || !r.has(testID(2), 2) {
		t.Error("remembered too long, or not the later stay")
	}
	add(r, 3, 1, 12) // drops the first stay of 2, not the second
	if !r.has(testID(2), 2) || !r.has(testID(3), 1) {
		t.Error("a later stay was forgotten with an earlier one")
	}
	none := remember(0)
	if add(none, 1, 1, 0); none.has(testID(1), 1) {
		t.Error("remembered without room")
	}
}

// I7: what has been fired leaves no room behind it.
func TestI7_WhatWasFiredIsForgotten(t *testing.T) {
	table := New(Config{FiredKeepMS: 5, FiredMost: 2_000})
	table.Resume(Cursor{}, 1, 0)
	table.Loaded()
	for n := range 2_000 {
		table.Load(message(uint64(n+1), int64(n+1), n))
		if got := fire(table, int64(n+1)); len(got) != 1 {
			t.Fatalf("fired %v", got)
		}
	}
	pages := slices.DeleteFunc(slices.Clone(table.recent.ring), func(page *[pageStays]firedStay) bool { return page == nil })
	if len(pages) > 2 || table.recent.n > 8 || table.recent.last.size > 8 || table.entries.size > 2 || len(table.groups.all) > 2 {
		t.Errorf("%d pages, %d stays, %d ids, %d entries, %d groups", len(pages), table.recent.n, table.recent.last.size, table.entries.size, len(table.groups.all))
	}
	table.check(t)
}
