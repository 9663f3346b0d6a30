package demo

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestHistogramQuantilesAreNearTheExactOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour)), 1, 300).Draw(t, "durations")
		var h histogram
		for _, v := range values {
			h.add(time.Duration(v))
		}
		slices.Sort(values)
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		rank := max(int(math.Ceil(q*float64(len(values)))), 1)
		exact := time.Duration(values[rank-1])
		got := h.quantile(q)
		if got < exact || got > exact+exact/16+time.Microsecond {
			t.Fatalf("quantile %v of %d values is %v, exactly %v", q, len(values), got, exact)
		}
		if last := time.Duration(values[len(values)-1]); h.quantile(1) != last || h.max != last {
			t.Fatalf("the largest of all is %v and %v, exactly %v", h.quantile(1), h.max, last)
		}
		if h.total != uint64(len(values)) {
			t.Fatalf("%d values counted, %d added", h.total, len(values))
		}
	})
}

func TestHistogramBucketsTileTheRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		us := rapid.Uint64Range(0, uint64(histogramMax.Microseconds())).Draw(t, "us")
		i := bucketOf(us)
		if us >= bucketEnd(i) {
			t.Fatalf("%d lies above its bucket %d, which ends at %d", us, i, bucketEnd(i))
		}
		if i > 0 && us < bucketEnd(i-1) {
			t.Fatalf("%d lies below its bucket %d, which starts at %d", us, i, bucketEnd(i-1))
		}
	})
}

func TestHistogramExtremes(t *testing.T) {
	var h histogram
	testkit.Equal(t, "the median of nothing", h.quantile(0.5), 0)
	h.add(-time.Second)
	h.add(time.Duration(math.MaxInt64))
	if got := h.quantile(0); got >= time.Microsecond {
		t.Errorf("a negative duration counts as %v, want the first bucket", got)
	}
	testkit.Equal(t, "the longest duration", h.quantile(1), histogramMax)
	before := h.clone()
	h.add(time.Second)
	if before.total != 2 {
		t.Errorf("a clone changed with its original")
	}
}
