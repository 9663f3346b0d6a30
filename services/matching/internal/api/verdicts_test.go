package api

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestReadVerdictsLikeTheGeneratedDecoder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		blob := rapid.SliceOfN(rapid.Byte(), 0, 40)
		want := &logv1.VerdictBatch{RequestId: rapid.Uint64().Draw(t, "id"), First: rapid.Uint32().Draw(t, "first")}
		for range rapid.IntRange(0, 5).Draw(t, "verdicts") {
			want.Verdicts = append(want.Verdicts, &logv1.EventVerdict{
				Code: rapid.SampledFrom([]string{"", "STALE"}).Draw(t, "code"), Message: rapid.StringN(0, 9, 99).Draw(t, "message"),
				Task: blob.Draw(t, "task"), Trace: blob.Draw(t, "trace"), DeadlineMs: rapid.Int64().Draw(t, "deadline"),
				Fenced: rapid.Bool().Draw(t, "fenced"),
			})
		}
		data := testkit.Encoded(t, want)
		got, err := readVerdicts(data)
		if err != nil || !same(got, want) {
			t.Fatalf("got %v %v\nwant %v", got, err, want)
		}
		if cut := len(data) - 1; cut > 0 && len(want.Verdicts) > 0 {
			if got, err := readVerdicts(data[:cut]); err == nil && same(got, want) {
				t.Fatal("a cut message was read as if it were whole")
			}
		}
	})
}

// same compares all that the core wants.
func same(got grab.Verdicts, want *logv1.VerdictBatch) bool {
	if got.Batch != want.RequestId || got.First != int(want.First) || len(got.All) != len(want.Verdicts) {
		return false
	}
	for i, w := range want.Verdicts {
		g := got.All[i]
		if g.Refused != w.Code || g.Fenced != w.Fenced || g.DeadlineMS != w.DeadlineMs || !bytes.Equal(g.Task, w.Task) || !bytes.Equal(g.Trace, w.Trace) {
			return false
		}
	}
	return true
}

func BenchmarkReadVerdicts(b *testing.B) {
	v := &logv1.VerdictBatch{RequestId: 1}
	for range 100 {
		v.Verdicts = append(v.Verdicts, &logv1.EventVerdict{Task: make([]byte, 400), DeadlineMs: 1 << 40})
	}
	data, err := v.MarshalVT()
	testkit.NoError(b, err)
	b.ReportAllocs()
	for n := 0; n < b.N; n += 100 {
		testkit.NoError(b, testkit.Err(readVerdicts(data)))
	}
}
