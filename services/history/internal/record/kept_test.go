package record_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// TestTriesInPlaceGoThroughMemory: what is carried, parked or archived remembers them, and its history tells them; others are stored as before.
func TestTriesInPlaceGoThroughMemory(t *testing.T) {
	steps := []*logv1.Step{{Kind: int32(taskstate.StepFailed), AtMs: 5, Grant: 1, DueAtMs: 9, Kept: true}, {Kind: int32(taskstate.StepFailed), AtMs: 9, Grant: 1}}
	kept := &logv1.Kept{SinceMs: 5, Tries: 3}
	data, err := (&logv1.Batch{Tasks: []*logv1.Record{changed(func(r *logv1.Record) { r.Kept, r.Steps = kept, steps }), readable}}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	decoder, encoder := record.NewDecoder(), new(record.Encoder)
	for range 2 { // its messages are used again
		tasks, _, err := decoder.Submits(data, time.Time{})
		if err != nil || len(tasks) != 2 {
			t.Fatal(len(tasks), err)
		}
		task := &tasks[0].Task
		if r := encoder.Record(task); !proto.Equal(r.Kept, kept) || len(r.Steps) != 2 || !proto.Equal(r.Steps[0], steps[0]) || !proto.Equal(r.Steps[1], steps[1]) {
			t.Errorf("stored %v, %v", r.Kept, r.Steps)
		}
		if shown := record.Public(task, false).Events; !shown[0].Kept || shown[1].Kept || task.Attempts() != task.Grants()+3 {
			t.Errorf("shown %v, %d attempts", shown, task.Attempts())
		}
		if other := &tasks[1].Task; encoder.Record(other).Kept != nil || other.Extra != nil {
			t.Errorf("a task without has %+v", other.Extra)
		}
	}
}

// TestAWorkerIsToldWhatItMayKeep: with the grant, where no rate covers its start, and with the verdict on a failure.
func TestAWorkerIsToldWhatItMayKeep(t *testing.T) {
	enc := record.Encoder{Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{})}
	for rated, want := range map[bool]int64{false: 7_000, true: 0} {
		task := &taskstate.Task{
			Policy: &taskstate.Policy{PinnedForMS: 7_000}, Version: 2, Failures: 4, Extra: &taskstate.Extra{Kept: &taskstate.Kept{Tries: 5}},
		}
		var polled yardv1.PolledTask
		grant := replica.Grant{Task: task, Token: ids.Token{Nonce: ids.Nonce(99, true, rated)}}
		if err := polled.UnmarshalVT(enc.Polled(&grant)); err != nil || polled.PinnedForMs != want || polled.Attempt != 7 || polled.Failures != 4 {
			t.Errorf("rated %v: %v, %v", rated, &polled, err)
		}
	}
	a := &replica.Answer{Verdicts: []replica.Verdict{{Verdict: taskstate.Verdict{RetryAt: 1_700_000_000_000, Failures: 300, LeaseUntil: 5, DeadlineAt: 6}}, {}}}
	var b logv1.VerdictBatch
	if err := b.UnmarshalVT(enc.Verdicts(a)[0]); err != nil || len(b.Verdicts) != 2 {
		t.Fatal(&b, err)
	}
	if want := (&logv1.EventVerdict{RetryAtMs: 1_700_000_000_000, Failures: 300, LeaseUntilMs: 5, DeadlineMs: 6}); !proto.Equal(b.Verdicts[0], want) || !proto.Equal(b.Verdicts[1], &logv1.EventVerdict{}) {
		t.Errorf("%v", &b)
	}
}

// TestAFailureSaysWhatItsWorkerWould in place, and what it knew.
func TestAFailureSaysWhatItsWorkerWould(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(1), 1, 1)
	data, err := (&logv1.EventBatch{Events: []*logv1.Event{{Kind: logv1.EventKind_EVENT_KIND_FAILED, TaskId: id[:], Keep: true, Failures: 4}, {Kind: logv1.EventKind_EVENT_KIND_FAILED, TaskId: id[:]}}}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	decoder := record.NewDecoder()
	for range 2 {
		in, err := decoder.Events(data)
		if err != nil || !in.Events[0].Keep || in.Events[0].Failures != 4 || in.Events[1].Keep || in.Events[1].Failures != 0 {
			t.Fatalf("%+v, %v", in, err)
		}
	}
}
