package record_test

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestTermsOfATurnAreReadBack: equal ones are one, also of two turns, so that tasks share their policies.
func TestTermsOfATurnAreReadBack(t *testing.T) {
	of := func(typ string, attempts int32) *logv1.TypeTerms {
		return &logv1.TypeTerms{Domain: "shop", Type: typ, Policy: &logv1.Policy{MaxAttempts: attempts, OfType: 1<<13 - 2, TypeRevision: int64(attempts)}}
	}
	decoder := record.NewDecoder()
	read := func(all ...*logv1.TypeTerms) []*taskstate.Terms {
		turn, err := record.ReadTurn((&record.Turn{LogVersion: 1, Terms: all}).Append(nil))
		testkit.NoError(t, err)
		out, err := decoder.Turn(&turn, 7, 1)
		testkit.NoError(t, err)
		return out.Terms
	}
	first, second := read(of("a", 3), of("b", 4)), read(of("a", 3), of("b", 5))
	if first[0] != second[0] || first[1] == second[1] || first[0] == first[1] {
		t.Error("equal terms are one, and others are not")
	}
	testkit.Equal(t, "the type", second[1].Of, taskstate.TypeName{Domain: "shop", Type: "b"})
	testkit.Equal(t, "the policy", *second[1].Policy, taskstate.Policy{MaxAttempts: 5, OfType: 1<<13 - 2, TypeRevision: 5})
	for n := range 5000 { // it forgets some
		if got := read(of("many", int32(n+1)))[0].Policy.MaxAttempts; got != int32(n+1) {
			t.Fatalf("%d attempts, want %d", got, n+1)
		}
	}
}
