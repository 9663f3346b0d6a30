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
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAnUpdateSaysSinceWhen copies of it may be in the log.
func TestAnUpdateSaysSinceWhen(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(1), 1, 1)
	var all []*logv1.Event
	kinds := []logv1.EventKind{logv1.EventKind_EVENT_KIND_UPDATE, logv1.EventKind_EVENT_KIND_SKIPPED, logv1.EventKind_EVENT_KIND_UNBLOCKED}
	for _, kind := range kinds {
		all = append(all, &logv1.Event{Kind: kind, TaskId: id[:], Update: &logv1.Update{Request: 5, SinceMs: 77, SoleUntilMs: 99}})
	}
	data, err := (&logv1.EventBatch{Events: slices.Clone(all)}).MarshalVT()
	testkit.NoError(t, err)
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
