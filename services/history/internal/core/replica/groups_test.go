package replica

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// groupOf is the group of each trigger.
func groupOf(g *dispatch.TriggerBatch) ([]string, bool) {
	return ids.Groups(g.Groups, g.GroupAt, len(g.Packed)/ids.TriggerBytes)
}

// grouped gives tasks groups, in turn; "" = none.
func grouped(groups ...string) func(*taskstate.Task) {
	n := 0
	return func(t *taskstate.Task) {
		if g := groups[n%len(groups)]; g != "" {
			t.Extra = &taskstate.Extra{Group: g}
		}
		n++
	}
}

// Triggers of many groups travel together, and each group is named once.
func TestTriggersNameTheirGroups(t *testing.T) {
	b := newBench(t, Config{})
	fx := b.submit(grouped("", "a", "b", "a", ""), 1, 2, 3, 4, 5)
	testkit.MustEqual(t, "batches", len(fx.Triggers), 1)
	g := &fx.Triggers[0]
	if got, ok := groupOf(g); !ok || !slices.Equal(got, []string{"", "a", "b", "a", ""}) || !slices.Equal(g.Groups, []string{"a", "b"}) {
		t.Errorf("%q of %q, %v", got, g.Groups, ok)
	}
	plain := b.submit(nil, 6, 7).Triggers[0]
	if got, ok := groupOf(&plain); !ok || got != nil || plain.Groups != nil || plain.GroupAt != nil {
		t.Errorf("without groups: %+v", plain)
	}
	again := b.submit(grouped("b"), 8).Triggers[0]
	if got, ok := groupOf(&again); !ok || !slices.Equal(got, []string{"b"}) {
		t.Errorf("in the next turn: %+v", again)
	}
}

// A batch with the longest names fits into a message, too.
func TestTriggersOfManyGroupsFitIntoAMessage(t *testing.T) {
	b := newBench(t, Config{})
	var names []string
	var all []int
	for i := range 9000 {
		names, all = append(names, strings.Repeat("g", 60)+fmt.Sprintf("%04d", i)), append(all, i+1)
	}
	fx := b.submit(grouped(names...), all...)
	sum := 0
	for i := range fx.Triggers {
		g := &fx.Triggers[i]
		if n := g.Bytes(); n > dispatch.PackBytesMax+200 {
			t.Errorf("a batch of %d bytes", n)
		}
		got, ok := groupOf(g)
		if !ok || !slices.Equal(got, names[sum:sum+len(got)]) {
			t.Fatalf("batch %d: the groups are not those of the tasks", i)
		}
		sum += len(got)
	}
	testkit.Equal(t, "triggers", sum, len(all))
}

// TestI5_AGroupIsNotOvertakenByAnother: what matching grants of other groups says nothing of a trigger; a later one of the same
// group does.
func TestI5_AGroupIsNotOvertakenByAnother(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(grouped("flood"), 1)
	b.now.MS += dispatch.PassedOverMS + 1
	b.submit(grouped("small", "flood"), 2, 3)
	b.now.MS += dispatch.MissingAgeMS + dispatch.PassedOverMS + dispatch.HealEveryMS
	b.step(Tick{})
	b.start(2)
	b.now.MS += dispatch.HealEveryMS
	b.equal("another group is granted", triggered(b.step(Tick{})), nil)
	b.start(3)
	b.now.MS += dispatch.HealEveryMS
	b.equal("a later one of its own", triggered(b.step(Tick{})), []int{1})
}

// What runs is listed by its group: a limit per group counts it so.
func TestBookingsNameTheirGroups(t *testing.T) {
	b := newBench(t, smallConfig())
	b.submit(grouped("acme", "zeta", "acme", ""), 1, 2, 3, 4)
	b.book(nil, 1, 2, 3, 4)
	got := map[string]int{}
	for _, g := range b.r.Bookings(dispatch.BookingsQuery{All: true, BytesMax: 1 << 20}).Groups {
		got[g.Group] += len(g.Packed) / ids.BookingBytes
	}
	if !maps.Equal(got, map[string]int{"acme": 2, "zeta": 1, "": 1}) {
		t.Errorf("there run %v", got)
	}
}
