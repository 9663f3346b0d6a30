package shard

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// I14: who asks without end has one look in each turn, and those of others come no later for it.
func TestI14_LooksOfDomainsTakeTurns(t *testing.T) {
	var waiting []look
	var looked []string
	add := func(name string) {
		waiting = append(waiting, look{name[:1], func(Core) { looked = append(looked, name) }})
	}
	for i := range 100 {
		add(fmt.Sprint("a", i))
	}
	for _, name := range []string{"b0", "c0", "b1", "d0", "e0", "e1"} {
		add(name)
	}
	var turns [][]string
	for len(waiting) > 0 {
		var now []look
		now, waiting = some(waiting)
		looked = nil
		for _, l := range now {
			l.at(nil)
		}
		turns = append(turns, looked)
	}
	want := [][]string{{"a0", "b0", "c0", "d0"}, {"a1", "b1", "e0"}, {"a2", "e1"}, {"a3"}}
	if len(turns) != 100 || !slices.EqualFunc(turns[:4], want, slices.Equal) {
		t.Errorf("%d turns, which begin as %v, want %v", len(turns), turns[:min(4, len(turns))], want)
	}
}

// All that ask are answered, though nothing else happens.
func TestEachLookIsTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		const many = 50
		answers := make(chan error, many)
		for range many {
			go func() {
				_, err := w.shard.Describe(w.t.Context(), &rpcv1.DescribeShardRequest{Domain: "d1", Tasklist: "mail", ListPollers: 1})
				answers <- err
			}()
		}
		synctest.Wait()
		testkit.MustEqual(t, "of were answered", len(answers), many)
		for range many {
			testkit.Check(t, <-answers)
		}
	})
}
