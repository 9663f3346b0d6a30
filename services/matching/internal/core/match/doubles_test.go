package match

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/doubles"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
)

// packedTask is the trigger of the n-th task.
func packedTask(n int) []byte {
	return ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(n)), Version: 1})
}

// What is of no use is left out, all else is kept in its order; without any the triggers are not copied.
func TestDoublesAreLeftOut(t *testing.T) {
	for kept, noted := range map[string][]int{"012345": nil, "345": {0, 1, 2}, "0145": {2, 3}, "0245": {1, 3}, "012": {3, 4, 5}, "": {0, 1, 2, 3, 4, 5}} {
		var d doubles.Set
		var all, want []byte
		a := arrival{groups: []string{"0", "1", "2", "3", "4", "5"}, ranks: []fairness.Rank{{At: 0}, {At: 1}, {At: 2}, {At: 3}, {At: 4}, {At: 5}}}
		for n := range 6 {
			all = append(all, packedTask(n)...)
		}
		before := slices.Clone(all)
		a.Triggers = all
		for _, n := range noted {
			d.Add(doubles.Print(packedTask(n)))
		}
		for _, n := range kept {
			want = append(want, packedTask(int(n-'0'))...)
		}
		if n := a.keep(func(i int) bool { return !d.Has(doubles.Print(a.Trigger(i))) }); !bytes.Equal(a.Triggers, want) || n != len(noted) || !bytes.Equal(all, before) {
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
