package natshistory

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// redriven: a task that is dead, comes back and ends again. Its last end is found, also by a reader that has found the one before and remembers where it
// is; its letter takes the place of the earlier one, and is deleted without a later one.
func redriven(t *testing.T, p archivePorts) {
	a, ctx := p.Archive(), t.Context()
	end := func(state taskstate.State, stay uint32) *taskstate.Task {
		task := finishedTask("shop", time.UnixMilli(1_700_000_000_000), 7)
		task.State, task.Parkings = state, stay
		return task
	}
	search := []replica.Search{{ID: end(taskstate.Dead, 0).ID, Domain: "rival"}, {ID: end(taskstate.Dead, 0).ID, Domain: "shop"}}
	deadLetterOf := func(want int64) uint64 { t.Helper(); return wantLetter(t, p, search, want) }
	lastEnd := func(want *taskstate.Task) {
		t.Helper()
		found, err := p.Reader.Archived(ctx, searches("shop", want.ID))
		if err != nil || found[0] == nil || found[0].Parkings != want.Parkings || found[0].State != int32(want.State) {
			t.Fatalf("found %v: %v, want stay %d", found, err, want.Parkings)
		}
	}
	deadLetterOf(-1)
	var before uint64
	for stay := range uint32(2) {
		dead := end(taskstate.Dead, stay)
		for range 2 { // a write of unknown outcome is repeated
			testkit.NoError(t, a.StoreDead(ctx, []*taskstate.Task{dead}))
		}
		fileAll(t, a, []*taskstate.Task{dead})
		lastEnd(dead)
		at := deadLetterOf(int64(stay))
		if at <= before || len(p.Dead(t)) != 1 {
			t.Fatalf("the letter is at %d behind %d, of %d", at, before, len(p.Dead(t)))
		}
		before = at
	}
	drop := replica.Letter{Domain: "shop", Tasklist: "mail", ID: search[1].ID, Seq: before}
	testkit.NoError(t, a.StoreDead(ctx, []*taskstate.Task{end(taskstate.Dead, 0)})) // of an owner that is late
	for _, wrong := range []replica.Letter{
		{Domain: "shop", Tasklist: "mail", ID: drop.ID, Seq: before - 1},
		{Domain: "rival", Tasklist: "mail", ID: drop.ID, Seq: before},
		{Domain: "shop", Tasklist: "mail", ID: ids.TaskID{1}, Seq: before},
	} {
		testkit.NoError(t, a.DropDead(ctx, []replica.Letter{wrong}))
		deadLetterOf(1)
	}
	for range 2 {
		testkit.NoError(t, a.DropDead(ctx, []replica.Letter{drop}))
		deadLetterOf(-1)
	}
	done := end(taskstate.Completed, 2)
	fileAll(t, a, []*taskstate.Task{done})
	lastEnd(done)
	var stays []uint32
	if err := a.Tail(ctx, 0, func(some []replica.Stay) error {
		for _, s := range some {
			stays = append(stays, s.Parkings)
		}
		return nil
	}); err != nil || len(stays) != 3 || stays[0] != 0 || stays[1] != 1 || stays[2] != 2 {
		t.Errorf("the tail holds stays %v: %v", stays, err)
	}
}

// wantLetter looks for the letter of the second task, that of a stay; -1 = there is none. The first search finds nothing.
func wantLetter(t *testing.T, p archivePorts, search []replica.Search, want int64) uint64 {
	t.Helper()
	found, err := p.Reader.Letters(t.Context(), search)
	if err != nil || len(found) != 2 || found[0] != nil {
		t.Fatalf("letters %v: %v", found, err)
	}
	switch {
	case found[1] == nil && want < 0:
		return 0
	case found[1] == nil || int64(found[1].Record.Parkings) != want:
		t.Fatalf("the letter is %v, want that of stay %d", found[1], want)
	}
	return found[1].Seq
}
