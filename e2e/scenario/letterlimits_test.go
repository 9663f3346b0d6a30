package scenario_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestADomainKeepsSoManyDeadLetters: the oldest beyond its number go, wherever their tasks are, and none that is redriven meanwhile is lost. Another domain keeps all.
func TestADomainKeepsSoManyDeadLetters(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "starts a system of its own")
	services := stack.DefaultServices()
	services.History.LetterLimitsEvery = 100 * time.Millisecond
	s := own(t, stack.Config{Partitioning: topology.Partitioning{History: 3, Matching: 1}, Tables: stack.TablesMemory, Services: &services})
	w, other := enter(t, s), enter(t, s)
	var all []string
	for range 12 { // one after the other, so that their order is known
		all = append(all, w.dead(1, "x", "network")...)
	}
	kept := other.dead(2, "x", "network")
	testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, DeadLettersMax: 5})))
	w.eventually(func() error {
		if left := w.lettersOf(yard.DeadLetterFilter{}); !slices.Equal(left, all[7:]) {
			return fmt.Errorf("left are %v, want the last five of %v", left, all)
		}
		return nil
	})
	// Redrives of the oldest ones, while others push them out: what is redriven comes back, and nothing else.
	equal(t, "redriven", w.redrive(&yardv1.RedriveRequest{TaskIds: all[7:9]}).Redriven, int64(2))
	for _, p := range w.take(2, "x") {
		w.complete(p)
	}
	for _, id := range all[7:9] {
		equal(t, "it is back, and ended", w.ended(id).State.Name(), "completed")
	}
	equal(t, "one that is gone", w.redrive(&yardv1.RedriveRequest{TaskIds: all[:1]}).Refused, int64(1))
	if left := other.lettersOf(yard.DeadLetterFilter{}); len(left) != 2 || !slices.Contains(left, kept[0]) {
		t.Errorf("another domain has %v left of %v", left, kept)
	}
}
