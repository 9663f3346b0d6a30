package gather

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Paused tasklists are listed, those that are over are not.
func TestPausedTasklistsAreListed(t *testing.T) {
	all := Tasklists([]*yardv1.Tasklist{{Name: "b"}}, map[string]*yardv1.Pause{"a": {By: "ann"}, "b": {By: "bob"}, "c": {By: "cy"}},
		map[string]*yardv1.Pause{"a": {By: "dee"}, "e": {By: "eve"}}, [][]*yardv1.ListedTasklist{{{Name: "c", Ready: 2}, {Name: "d", Ready: 1}}, {{Name: "c", Ready: 3}}})
	var got []string
	for _, l := range all {
		got = append(got, fmt.Sprint(l.Name, l.Pause.GetBy(), l.Drain.GetBy(), l.Settings != nil, l.Ready))
	}
	testkit.Equal(t, "result", got, []string{"aanndeefalse 0", "bbobtrue 0", "ccyfalse 5", "dfalse 1", "eevefalse 0"})
}

// TestADescriptionIsASum: counts are added up; slots are the domain's, of which each part tells, and one may be late.
func TestADescriptionIsASum(t *testing.T) {
	slots := func(ref string, n int32) *yardv1.SlotUse { return &yardv1.SlotUse{Ref: ref, InUse: n} }
	got := Description("mail", []*yardv1.DescribeTasklistResponse{
		{Ready: 1, Waiting: 2, OldestReadyMs: 30, Slots: []*yardv1.SlotUse{slots("b", 3), slots("a", 1)}},
		{Ready: 4, Dead: 1, OldestReadyMs: 20, Slots: []*yardv1.SlotUse{slots("b", 5)}},
	})
	testkit.Equal(t, "counts", fmt.Sprint(got.Tasklist, got.Ready, got.Waiting, got.Dead, got.OldestReadyMs), "mail5 2 1 30")
	testkit.Equal(t, "slots", fmt.Sprint(len(got.Slots), got.Slots[0].Ref, got.Slots[0].InUse, got.Slots[1].Ref, got.Slots[1].InUse), "2a1b5")
}
