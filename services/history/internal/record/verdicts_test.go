package record_test

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestVerdictsSayWhereTheyBegin: of a part of the answer, and of each message that it is cut into.
func TestVerdictsSayWhereTheyBegin(t *testing.T) {
	for _, first := range []int{0, 3} {
		a := &replica.Answer{ReplyTo: "asker", RequestID: 7, First: first}
		for n := range 5 {
			v := replica.Verdict{Verdict: taskstate.Verdict{Code: fault.Stale}}
			v.Grant.Task = &taskstate.Task{Policy: &taskstate.Policy{}, Payload: taskstate.Blob{Data: make([]byte, 250<<10)}, Type: string(rune('a' + n))}
			a.Verdicts = append(a.Verdicts, v)
		}
		enc := record.Encoder{Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{})}
		messages := enc.Verdicts(a)
		testkit.MustEqual(t, "messages", len(messages), 3)
		at := first
		for _, m := range messages {
			var b logv1.VerdictBatch
			if err := b.UnmarshalVT(m); err != nil || b.RequestId != 7 || int(b.First) != at {
				t.Fatalf("%v, request %d, from %d, want %d", err, b.RequestId, b.First, at)
			}
			for _, v := range b.Verdicts {
				var task yardv1.PolledTask
				err := task.UnmarshalVT(v.Task)
				if want := string(rune('a' + at - first)); err != nil || task.Type != want || v.Code != string(fault.Stale) {
					t.Errorf("verdict %d: %s %q, %v", at, v.Code, task.Type, err)
				}
				at++
			}
		}
		testkit.Equal(t, "verdicts up to", at, first+5)
	}
}
