package replica

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// TestAnOvertakenOwnerEndsNothing: what it says of a full limit is void behind the fence of a newer owner, and counts before it.
func TestAnOvertakenOwnerEndsNothing(t *testing.T) {
	for _, overtaken := range []bool{true, false} {
		b := newBench(t, Config{})
		b.submit(nil, 1, 2)
		b.book(taskstate.NewPath("type/send"), 2)
		epoch := uint64(4)
		b.fence(epoch)
		if overtaken {
			epoch--
		}
		waits, runs := b.r.tasks[id(1)], b.r.tasks[id(2)]
		next := ids.Token{Position: waits.Position, Version: waits.Version + 1}
		b.seq++
		fx := b.step(&Events{Seq: b.seq, At: b.now.MS, ReplyTo: "asker", Shard: 1, Epoch: epoch, Events: []taskstate.Event{
			{Kind: taskstate.Reject, ID: id(1), Fence: next, ReadyBy: b.now.MS, Message: "full"},
			{Kind: taskstate.Displace, ID: id(2), Fence: runs.Token(), Message: "full"},
		}})
		for i, v := range fx.Answers[0].Verdicts {
			if v.Fenced != overtaken || (v.Code == fault.Stale) != overtaken {
				t.Errorf("overtaken %v, event %d: %+v", overtaken, i, v)
			}
		}
		if (waits.State == taskstate.Ready) != overtaken || runs.CancelRequested == overtaken {
			t.Errorf("overtaken %v: one is %s, the other is asked to stop: %v", overtaken, waits.State, runs.CancelRequested)
		}
	}
}

// TestHoldersAreTheOldest: of a limit, those that hold its slots for the longest and are not asked to stop; and how many wait for long enough.
func TestHoldersAreTheOldest(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2, 3, 4)
	b.submit(nil, 5, 6)
	send := taskstate.NewPath("type/send")
	for _, n := range []int{3, 1, 2} {
		b.book(send, n)
		b.now.MS += 5
	}
	b.book(taskstate.NewPath("domain"), 4)
	ready := b.r.tasks[id(5)].ReadyAt
	b.event(taskstate.Cancel, 1, ids.Token{})
	q := dispatch.HoldersQuery{Limit: "type/send", Most: 9, Types: []string{"send"}, ReadyBy: ready}
	early, few, other := q, q, q
	early.ReadyBy, few.Most, other.Types = ready-1, 1, []string{"bill"}
	for name, c := range map[string]struct {
		domain          string
		q               dispatch.HoldersQuery
		oldest, waiting int
	}{"all": {"shop", q, 2, 2}, "too young": {"shop", early, 2, 0}, "few": {"shop", few, 1, 1}, "another type": {"shop", other, 2, 0}, "another domain": {"bank", q, 0, 0}} {
		h := b.r.Holders(c.domain, []dispatch.HoldersQuery{c.q})[0]
		if len(h.Oldest) != c.oldest || h.Waiting != c.waiting || (h.Leaving == 1) != (c.domain == "shop") {
			t.Errorf("%s: %d oldest, %d on their way out, %d wait", name, len(h.Oldest), h.Leaving, h.Waiting)
		} else if c.oldest > 0 && h.Oldest[0].ID != id(3) {
			t.Errorf("%s: the first is %d", name, h.Oldest[0].ID[15])
		}
	}
}

// TestWaitingForALimitOfAGroup: those of the group count, where the limit is that of one; else all.
func TestWaitingForALimitOfAGroup(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(grouped("g", "h", "g", ""), 1, 2, 3, 4)
	var all []dispatch.HoldersQuery
	for i, group := range []string{"", "g", "h", "none"} {
		all = append(all, dispatch.HoldersQuery{Limit: fmt.Sprint(i), Most: 9, Types: []string{"send"}, Group: group, ReadyBy: b.r.tasks[id(1)].ReadyAt})
	}
	for i, h := range b.r.Holders("shop", all) {
		if want := []int{4, 2, 1, 0}[i]; h.Waiting != want {
			t.Errorf("of group %q %d wait, want %d", all[i].Group, h.Waiting, want)
		}
	}
}
