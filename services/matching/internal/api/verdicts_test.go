package api

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The core gets all of a verdict that it wants; a cut message is refused.
func TestReadVerdicts(t *testing.T) {
	t.Parallel()
	data := testkit.Encoded(t, &logv1.VerdictBatch{RequestId: 7, First: 3, Verdicts: []*logv1.EventVerdict{
		{Task: []byte("task"), Trace: []byte("trace"), DeadlineMs: 9},
		{Code: "STALE", Message: "too late", Fenced: true},
	}})
	got, err := readVerdicts(data)
	testkit.NoError(t, err)
	testkit.Equal(t, "verdicts", got, match.Verdicts{Batch: 7, First: 3, All: []match.Verdict{
		{Task: []byte("task"), Trace: []byte("trace"), DeadlineMS: 9},
		{Refused: "STALE", Fenced: true},
	}})
	if _, err := readVerdicts(data[:len(data)-1]); err == nil {
		t.Error("a cut message was read")
	}
}
