package record_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
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
