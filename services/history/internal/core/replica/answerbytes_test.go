package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestS10AGrabIsGrantedWhatFits: of the grabs of a batch for a poll those are granted that fit into the bytes of the poll; the first one always is. What
// does not fit stays ready, and another poll of the batch may have it. The batch has the same verdicts if it comes again.
func TestS10AGrabIsGrantedWhatFits(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(func(task *taskstate.Task) { task.Payload.Data = make([]byte, 10_000) }, upFrom(1, 7)...)
	b.submit(nil, 8)
	polls := []dispatch.Poll{{ReplyTo: "a", BytesMax: 25_000}, {ReplyTo: "b", BytesMax: 5_000}, {ReplyTo: "c"}}
	b.seq++
	message := func() *Events {
		in := &Events{Seq: b.seq, At: b.now.MS, ReplyTo: "asker", RequestID: 1, Shard: 1, Epoch: 1, Polls: polls}
		for i, poll := range []uint32{1, 1, 1, 2, 2, 3, 3, 1} {
			in.Events = append(in.Events, taskstate.Event{
				Kind: taskstate.Started, ID: id(i + 1), Poll: poll,
				Fence: ids.Token{Position: b.r.tasks[id(i+1)].Position, Version: 1, Nonce: uint64(i + 1)},
			})
		}
		return in
	}
	for _, name := range []string{"first", "again"} {
		fx := b.step(message())
		testkit.MustEqual(t, "answers", len(fx.Answers), 1)
		for i, want := range []fault.Code{"", "", fault.ResourceExhausted, "", fault.ResourceExhausted, "", "", ""} {
			v := fx.Answers[0].Verdicts[i]
			state := taskstate.Running
			if want != "" {
				state = taskstate.Ready
			}
			if got := b.r.Get(id(i + 1)).State; v.Code != want || got != state {
				t.Errorf("%s: task %d is %v, its verdict is %q, want %q", name, i+1, got, v.Code, want)
			}
		}
		b.seq++
	}
}
