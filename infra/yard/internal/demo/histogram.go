package demo

import (
	"math"
	"math/bits"
	"time"
)

// A histogram's buckets are exact below subBuckets microseconds; above, each
// power of two is cut into subBuckets/2 equal parts, so a bucket is never wider
// than 1/16 of the values in it.
const (
	subBucketBits = 5
	subBuckets    = 1 << subBucketBits
	halfBuckets   = subBuckets / 2
	// histogramMax is the longest duration distinguished; longer ones count as it.
	histogramMax = 24 * time.Hour
)

// histogram counts durations in logarithmic buckets of whole microseconds. The
// zero value is empty and ready. It is not safe for concurrent use.
type histogram struct {
	counts []uint64
	total  uint64
	max    time.Duration
}

func (h *histogram) add(d time.Duration) {
	d = min(max(d, 0), histogramMax)
	i := bucketOf(uint64(d.Microseconds()))
	if i >= len(h.counts) {
		h.counts = append(h.counts, make([]uint64, i+1-len(h.counts))...)
	}
	h.counts[i]++
	h.total++
	h.max = max(h.max, d)
}

// quantile returns the duration that the fraction q of all values does not
// exceed: at least the exact one, and at most 1/16 above it. 0 when empty.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(h.total)))
	rank = min(max(rank, 1), h.total)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(time.Duration(bucketEnd(i))*time.Microsecond-1, h.max)
		}
	}
	return h.max
}

// clone copies h, for readers outside of the lock that guards it.
func (h *histogram) clone() histogram {
	c := *h
	c.counts = append([]uint64(nil), h.counts...)
	return c
}

// bucketOf is the bucket that a number of microseconds falls into.
func bucketOf(us uint64) int {
	if us < subBuckets {
		return int(us)
	}
	// shift leaves the leading subBucketBits bits, of which the first is always set.
	shift := bits.Len64(us) - subBucketBits
	return subBuckets + (shift-1)*halfBuckets + int(us>>shift) - halfBuckets
}

// bucketEnd is the first number of microseconds above a bucket.
func bucketEnd(i int) uint64 {
	if i < subBuckets {
		return uint64(i) + 1
	}
	shift := (i-subBuckets)/halfBuckets + 1
	lead := uint64((i-subBuckets)%halfBuckets + halfBuckets)
	return (lead + 1) << shift
}
