package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
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
