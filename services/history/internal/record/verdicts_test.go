package record_test

import (
	"strings"
	"testing"
	"time"

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

// TestPolledBytes: no task takes more bytes in an answer than its grab was counted with, and none takes much less.
func TestPolledBytes(t *testing.T) {
	large := taskstate.Task{
		ID: ids.NewTaskID(time.UnixMilli(1<<41), 3, 1<<60), Priority: 5, Type: strings.Repeat("t", 60), Tasklist: strings.Repeat("l", 60), Failures: 1 << 20, Version: 1 << 20,
		Payload: taskstate.Blob{Data: make([]byte, 70_000), Encoding: 2}, Trace: strings.Repeat("x", 25),
		Policy: &taskstate.Policy{MaxAttempts: 1000, StartToCloseMS: 1 << 40, HeartbeatTimeoutMS: 1 << 40},
		Extra:  &taskstate.Extra{Group: strings.Repeat("g", 60), Cost: 1000, Headers: []taskstate.Header{{Name: strings.Repeat("n", 60), Value: strings.Repeat("v", 200)}, {Name: "a", Value: "b"}}},
	}
	small := taskstate.Task{ID: large.ID, Type: "t", Tasklist: "l", Priority: 3, Policy: &taskstate.Policy{MaxAttempts: 1, StartToCloseMS: 1}}
	enc := record.Encoder{Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{}), NowMS: 1}
	for name, task := range map[string]*taskstate.Task{"large": &large, "small": &small} {
		got, counted := len(enc.Polled(&replica.Grant{Task: task, DeadlineAt: 1 << 41})), int(taskstate.PolledBytes(task))
		if got > counted || got < counted-120 {
			t.Errorf("the %s task takes %d bytes and was counted with %d", name, got, counted)
		}
	}
}
