package match

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
)

// R33: polls that wait for a type have the triggers of others not sent again that the table holds, or that
// were read ahead of it. While the tables are away, all are wanted.
func TestR33WhatTheTableHoldsIsNotAskedFor(t *testing.T) {
	w, o := limited(t, 1, 1)
	w.ends = false
	w.ready("d", "l0", "a", 1, 20)
	w.ready("d", "l0", "c", 2, 20)
	w.keepPolling(20*ms, "l0", "a") // one runs, the others wait for its slot
	w.wait("p", 1, "b")
	w.run(10 * time.Minute)
	if len(w.hungry) == 0 {
		t.Fatal("history was not asked")
	}
	for _, h := range w.hungry {
		if !slices.Equal(h.Present, []string{"a", "c"}) {
			t.Fatalf("asked for %+v", h)
		}
	}
	if ready, _ := counts(o.s, "d", "l0"); ready != 39 {
		t.Errorf("after 10 minutes the table holds %d triggers of 39 tasks", ready)
	}
	w.down["d"] = true
	w.hungry = nil
	w.ready("d", "l0", "c", 2, 1)
	w.wait("q", 1, "b")
	w.run(time.Minute - 2*ms)
	if n := len(w.hungry); n == 0 || len(w.hungry[n-1].Present) != 0 {
		t.Errorf("asked for %+v", w.hungry)
	}
}

// A complaint names so many types at most.
func TestAComplaintIsShort(t *testing.T) {
	w, o := begun(t, 1)
	for i := range tree.PresentMax + 10 {
		w.ready("d", "l0", fmt.Sprintf("t%03d", i), 1, 1)
	}
	w.run(20 * ms)
	if got := o.s.domains["d"].Sources[0].Of.node.Present(); len(got) != tree.PresentMax || !slices.IsSorted(got) || got[0] != "t000" {
		t.Errorf("%d types: %v", len(got), got)
	}
}
