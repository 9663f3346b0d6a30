package record_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

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

// TestAVerdictSaysSinceWhenATracedTaskWasReady, of grants whose trace is sampled only.
func TestAVerdictSaysSinceWhenATracedTaskWasReady(t *testing.T) {
	enc := record.Encoder{Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{})}
	grant := func(sampled byte) replica.Verdict {
		return replica.Verdict{Trace: append(make([]byte, 24), sampled), Grant: replica.Grant{Task: &taskstate.Task{Policy: &taskstate.Policy{}}, ReadyAt: 1700}}
	}
	a := &replica.Answer{Verdicts: []replica.Verdict{grant(1), grant(0), {}}}
	var b logv1.VerdictBatch
	testkit.NoError(t, b.UnmarshalVT(enc.Verdicts(a)[0]))
	for i, want := range []int64{1700, 0, 0} {
		testkit.Equal(t, fmt.Sprintf("verdict %d", i), b.Verdicts[i].ReadyAtMs, want)
	}
}
