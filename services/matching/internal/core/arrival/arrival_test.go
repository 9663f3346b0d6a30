package arrival

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// packedTask is the trigger of the n-th task.
func packedTask(n int) []byte {
	return ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(n)), Version: 1})
}

// TestDuplicatesAreLeftOut: all else is kept in its order; without any the triggers are not copied.
func TestDuplicatesAreLeftOut(t *testing.T) {
	for kept, noted := range map[string][]int{"012345": nil, "345": {0, 1, 2}, "0145": {2, 3}, "0245": {1, 3}, "012": {3, 4, 5}, "": {0, 1, 2, 3, 4, 5}} {
		var all, want []byte
		a := part{groups: []string{"0", "1", "2", "3", "4", "5"}, ranks: []fairness.Rank{{At: 0}, {At: 1}, {At: 2}, {At: 3}, {At: 4}, {At: 5}}}
		for n := range 6 {
			all = append(all, packedTask(n)...)
		}
		before := slices.Clone(all)
		a.Triggers = all
		for _, n := range kept {
			want = append(want, packedTask(int(n-'0'))...)
		}
		if n := a.Keep(func(i int) bool { return !slices.Contains(noted, i) }); !bytes.Equal(a.Triggers, want) || n != len(noted) || !bytes.Equal(all, before) {
			t.Errorf("without %v are left %d, and %d left out", noted, a.Len(), n)
		}
		if strings.Join(a.groups, "") != kept || len(a.ranks) != len(kept) || slices.ContainsFunc(a.ranks, func(t fairness.Rank) bool { return !strings.Contains(kept, fmt.Sprint(t.At)) }) {
			t.Errorf("without %v the groups of the rest are %v, their ranks %v", noted, a.groups, a.ranks)
		}
		if noted == nil && &a.Triggers[0] != &all[0] {
			t.Error("it was copied")
		}
	}
}

// tasklist counts its types per group, or not. The group idle has weight 0.
type tasklist struct{ perGroup bool }

func (l *tasklist) UnknownGroups(at table.Column) bool { return l.perGroup && at.Group == "" }
func (l *tasklist) Weights() fairness.Weights          { return fairness.Weights{"idle": 0} }

// turn is the arrivals of a turn, and what became of messages.
type turn struct {
	Arrivals[*tasklist]
	acks []uint64
}

func begin() *turn {
	s := &turn{}
	s.Begin(&s.acks)
	return s
}

// add has triggers arrive, one of each group.
func (s *turn) add(l *tasklist, d *Delivery, groups ...string) {
	t := &Triggers{Tasklist: table.Tasklist{Domain: "d", Name: "l"}, Column: table.Column{Priority: 9, Type: "a"}, ReadyAt: 5, Groups: groups}
	for n := range groups {
		t.Packed = append(t.Packed, packedTask(n)...)
	}
	s.Add(l, t, d)
	s.Finish(d)
}

// columns are the group, the priority, the age and the number of triggers of each chunk.
func (s *turn) columns() (out string) {
	for i := range s.All {
		a := &s.All[i]
		out += fmt.Sprintf("%s%d@%d:%d ", a.Group, a.Priority, a.ReadyAt%fairness.IdleFrom, a.Len())
	}
	return out
}

// TestAMessageIsCutIntoChunks: of a bounded size, by groups where these have columns, and groups of weight 0 behind all others.
func TestAMessageIsCutIntoChunks(t *testing.T) {
	for _, c := range []struct {
		perGroup bool
		groups   []string
		want     string
	}{
		{false, []string{"g", "h", ""}, "5@5:3 "},
		{false, slices.Repeat([]string{"g"}, 2*table.ChunkTriggersMax+1), "5@5:128 5@6:128 5@7:1 "},
		{false, []string{"g", "idle", "h"}, "6@5:1 5@5:2 "},
		{true, []string{"g", "", "g", "idle"}, "g5@5:2 /5@5:1 idle6@5:1 "},
	} {
		s, d := begin(), NewDelivery(7)
		s.add(&tasklist{perGroup: c.perGroup}, d, c.groups...)
		testkit.Equal(t, fmt.Sprint(len(c.groups)), s.columns(), c.want)
		testkit.Equal(t, "messages that are done with", len(s.acks), 0)
		s.FinishAll(s.All)
		testkit.Equal(t, "then", fmt.Sprint(s.acks), "[7]")
	}
}

// TestAMessageIsTakenCareOfAsAWhole: when all parts of it are.
func TestAMessageIsTakenCareOfAsAWhole(t *testing.T) {
	s, d := begin(), NewDelivery(7)
	s.add(&tasklist{perGroup: true}, d, "g", "h")
	s.FinishAll(s.All[:1])
	testkit.Equal(t, "a part is", len(s.acks), 0)
	s.FinishAll(s.All[1:])
	testkit.Equal(t, "it is", s.acks, []uint64{7})
	s.PutBack(&tasklist{}, table.Chunk{})
	s.FinishAll(s.All[2:]) // of no message any more
	testkit.Equal(t, "messages", len(s.acks), 1)
}

// TestArrivalsAreSorted: the most urgent and oldest first. Those of a tasklist can be released.
func TestArrivalsAreSorted(t *testing.T) {
	s, l, other := begin(), &tasklist{}, &tasklist{}
	s.add(l, NewDelivery(1), "g")
	s.add(other, NewDelivery(2), "h")
	s.PutBack(l, table.Chunk{Column: table.Column{Priority: 1, Type: "a"}, ReadyAt: 9, Triggers: packedTask(1)})
	s.PutBack(l, table.Chunk{Column: table.Column{Priority: 5, Type: "a"}, ReadyAt: 1, Triggers: packedTask(1)})
	s.Sort()
	testkit.Equal(t, "sorted", s.columns(), "1@9:1 5@1:1 5@5:1 5@5:1 ")
	s.Release(func(of *tasklist) bool { return of == l })
	testkit.Equal(t, "are left", fmt.Sprint(s.columns(), s.acks), "5@5:1 [1]")
}

// TestTriggersWithoutGroups: those of others stay, and the message as it is.
func TestTriggersWithoutGroups(t *testing.T) {
	packed := slices.Concat(packedTask(0), packedTask(1))
	paused := map[string]bool{"g": true}
	all := &Triggers{Packed: packed, Groups: []string{"g", "h"}}
	if rest := all.Without(paused); !bytes.Equal(rest.Packed, packedTask(1)) || len(all.Packed) != len(packed) {
		t.Errorf("%d bytes of %d are left", len(rest.Packed), len(all.Packed))
	}
	if none := (&Triggers{Packed: packed}); none.Without(paused) != none || all.Without(nil) != all {
		t.Error("nothing is paused, and they are others")
	}
}
