package due

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI1_ATaskDueAtTheEpochFires: between rounds no task is late for one.
func TestI1_ATaskDueAtTheEpochFires(t *testing.T) {
	var o overdue
	o.parkDue("shop", 1, 0)
	table := newTable(t)
	table.Load(o.messages[0])
	testkit.Equal(t, "fired", fire(table, 1000), []ids.TaskID{testID(1)})
}

// TestI11_WhoHasNothingDueDoesNotWait: a task of another domain comes in the middle of a round, and is not due. It waits for no one.
func TestI11_WhoHasNothingDueDoesNotWait(t *testing.T) {
	var o overdue
	o.park("flood", 1000)
	table := newTable(t, o.messages...)
	fireOne(t, table, 2000, chunkOf(100))
	table.Load(o.parkDue("quiet", 1, 5000))
	fireOne(t, table, 2000, chunkOf(100))
	testkit.Equal(t, "apart", apartIn(table), 0)
}

// TestI11_TheDomainThatFillsTheChunkIsApart, and of those that fill it alike the first one by name.
func TestI11_TheDomainThatFillsTheChunkIsApart(t *testing.T) {
	for want, taken := range map[string]map[string]int{"c": {"a": 30, "b": 30, "c": 40}, "a": {"a": 30, "b": 30, "c": 30}} {
		for range 10 { // the domains of a chunk come in the order of a map
			var o overdue
			chunk := 0
			for _, domain := range []string{"c", "b", "a"} {
				o.park(domain, taken[domain])
				chunk += taken[domain]
			}
			for domain := range taken {
				o.park(domain, 1000)
			}
			table := newTable(t, o.messages...)
			fireOne(t, table, 2000, chunkOf(chunk))
			testkit.Equal(t, "the domain that is apart", table.Cursor().Apart[0].Domain, want)
		}
	}
}

// TestI11_ADomainWithASixteenthOfTheChunkIsApart, and one with less is not.
func TestI11_ADomainWithASixteenthOfTheChunkIsApart(t *testing.T) {
	for taken, apart := range map[int]int{19: 0, 20: 1} {
		var o overdue
		o.park("some", taken)
		for n := range 320 - taken {
			o.park(fmt.Sprint("quiet", n), 1)
		}
		o.park("some", 100)
		o.park("quiet", 1)
		table := newTable(t, o.messages...)
		limits := chunkOf(320)
		limits.Messages = 320
		fireOne(t, table, 2000, limits)
		testkit.Equal(t, fmt.Sprint("apart with ", taken), apartIn(table), apart)
	}
}

// TestI11_ADomainThatHasFiredAllIsNotApart: it needs none of the places.
func TestI11_ADomainThatHasFiredAllIsNotApart(t *testing.T) {
	var o overdue
	o.park("brief", 60)
	o.park("flood", 1000)
	o.park("quiet", 1)
	table := newTable(t, o.messages...)
	fireOne(t, table, 2000, chunkOf(100))
	testkit.Equal(t, "apart", apartIn(table), 0)
	fireOne(t, table, 2000, chunkOf(100))
	testkit.Equal(t, "apart", table.Cursor().Apart[0].Domain, "flood")
}

// TestADomainJoinsThoughNothingElseFires: it had a round more than the others, of which none is left.
func TestADomainJoinsThoughNothingElseFires(t *testing.T) {
	var o overdue
	o.park("flood", 400)
	o.park("quiet", 5)
	table := newTable(t, o.messages...)
	fireOne(t, table, 2000, chunkOf(100))
	testkit.MustEqual(t, "apart", apartIn(table), 1)
	table.Load(o.parkDue("flood", 100, 1500)) // too late for the round
	for now := int64(2000); table.Len() > 0; now += 100 {
		fireOne(t, table, now, chunkOf(100))
	}
	testkit.Equal(t, "apart at the end", apartIn(table), 0)
	testkit.Equal(t, "the next owner fires again", len(fire(takeOver(table.Cursor(), 5000, o.messages...), 5000)), 0)
}

// TestAllThatMayJoinDo, at once: the last line takes the place of one that has joined.
func TestAllThatMayJoinDo(t *testing.T) {
	line := Line{Base: Mark{2000, 1}}
	c := Cursor{Line: line, Apart: [ApartMost]Apart{{Domain: "a", Line: line}, {Domain: "b", Line: line}, {Domain: "c", Line: line}}}
	testkit.Equal(t, "apart", apartIn(takeOver(c, 3000)), 0)
}
