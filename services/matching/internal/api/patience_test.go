package api

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// After a lost leader the first tries are given up soon, and further ones take longer, up to a bound.
func TestTriesForHintsTakeLongerWhenNoneIsAnswered(t *testing.T) {
	var all []time.Duration
	for unanswered := range 8 {
		all = append(all, consumerTimeout(unanswered))
	}
	const quick = 1500 * time.Millisecond
	testkit.Equal(t, "the bounds", all, []time.Duration{quick, quick, quick, quick, 2 * quick, 4 * quick, 8 * time.Second, 8 * time.Second})
	testkit.Equal(t, "the bound after many", consumerTimeout(1_000_000), 8*time.Second)
}
