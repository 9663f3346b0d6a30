package record_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// TestRequestsOfUpdatesGoThroughMemory with their times, and when those were taken that are not kept. An owner before log version 11 has stored neither: what it kept is
// known, and what it may have forgotten too.
func TestRequestsOfUpdatesGoThroughMemory(t *testing.T) {
	many, times := make([]uint64, 64), make([]int64, 64)
	for i := range many {
		many[i], times[i] = uint64(1000+i), int64(9_000-i)
	}
	for name, c := range map[string]struct{ stored, again *logv1.Updates }{
		"all": {stored: &logv1.Updates{
			Applied: 90, Seq: 7, Passed: 5, PassedNow: 3, Requests: many, RequestsAtMs: times, RequestsForgottenAtMs: 8_000, Refused: []uint64{4}, RefusedAtMs: []int64{44}, RefusedForgottenAtMs: 43,
		}},
		"nothing":              {stored: &logv1.Updates{Applied: 1}},
		"older, with all":      {&logv1.Updates{Applied: 3, Requests: []uint64{3, 2, 1}, Refused: []uint64{9}}, &logv1.Updates{Applied: 3, Requests: []uint64{3, 2, 1}, RequestsAtMs: []int64{0, 0, 0}, Refused: []uint64{9}, RefusedAtMs: []int64{0}}},
		"older, and more":      {&logv1.Updates{Applied: 5, Requests: []uint64{5, 4, 3, 2}}, &logv1.Updates{Applied: 5, Requests: []uint64{5, 4, 3, 2}, RequestsAtMs: make([]int64, 4), RequestsForgottenAtMs: taskstate.ForgottenAnyTime}},
		"older, refused 4":     {&logv1.Updates{Refused: []uint64{5, 4, 3, 2}}, &logv1.Updates{Refused: []uint64{5, 4, 3, 2}, RefusedAtMs: make([]int64, 4), RefusedForgottenAtMs: taskstate.ForgottenAnyTime}},
		"an older one's again": {&logv1.Updates{Applied: 5, Requests: []uint64{5, 4, 3, 2}, RequestsAtMs: make([]int64, 4), RequestsForgottenAtMs: 6}, nil},
	} {
		data, err := (&logv1.Batch{Tasks: []*logv1.Record{changed(func(r *logv1.Record) { r.Updates = c.stored })}}).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		decoder, encoder, want := record.NewDecoder(), new(record.Encoder), c.again
		if want == nil {
			want = c.stored
		}
		for range 2 { // its messages are used again
			tasks, _, err := decoder.Submits(data, time.Time{})
			if err != nil || len(tasks) != 1 {
				t.Fatal(len(tasks), err)
			}
			if got := encoder.Record(&tasks[0].Task).Updates; !proto.Equal(got, want) {
				t.Errorf("%s: stored %v, not %v", name, got, want)
			}
		}
	}
}

// TestAnUpdateSaysSinceWhen copies of it may be in the log.
func TestAnUpdateSaysSinceWhen(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(1), 1, 1)
	var all []*logv1.Event
	kinds := []logv1.EventKind{logv1.EventKind_EVENT_KIND_UPDATE, logv1.EventKind_EVENT_KIND_SKIPPED, logv1.EventKind_EVENT_KIND_UNBLOCKED}
	for _, kind := range kinds {
		all = append(all, &logv1.Event{Kind: kind, TaskId: id[:], Update: &logv1.Update{Request: 5, SinceMs: 77, SoleUntilMs: 99}})
	}
	data, err := (&logv1.EventBatch{Events: slices.Clone(all)}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	events, err := record.NewDecoder().Events(data)
	if err != nil || len(events.Events) != len(kinds) {
		t.Fatal(events, err)
	}
	for i, e := range events.Events {
		if u := e.Update; u.Request != 5 || u.Since != 77 || u.SoleUntil != 99 {
			t.Errorf("%v: %+v", kinds[i], u)
		}
	}
}

// TestAVerdictSaysThatItIsFinal: who hears that need not repeat.
func TestAVerdictSaysThatItIsFinal(t *testing.T) {
	enc := record.Encoder{Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{})}
	a := &replica.Answer{Verdicts: []replica.Verdict{{Verdict: taskstate.Verdict{Code: "UNKNOWN", Final: true, Revision: 4}}, {Verdict: taskstate.Verdict{Code: "UNKNOWN"}}}}
	var b logv1.VerdictBatch
	if err := b.UnmarshalVT(enc.Verdicts(a)[0]); err != nil || len(b.Verdicts) != 2 {
		t.Fatal(&b, err)
	}
	if want := (&logv1.EventVerdict{Code: "UNKNOWN", Final: true, Revision: 4}); !proto.Equal(b.Verdicts[0], want) || b.Verdicts[1].Final {
		t.Errorf("%v", &b)
	}
}
