package bench

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Each second has a p99 of its own: one that is slow does not change that of the next.
func TestEachSecondHasItsOwnP99(t *testing.T) {
	s := newStarts(5)
	for i := range s.began {
		s.began[i].Store(int64(time.Duration(i+1) * time.Millisecond))
	}
	s.began[0].Store(int64(time.Second))
	testkit.Equal(t, "p99s", s.p99s(2), []float64{1e6, 4000, 5000})
}
