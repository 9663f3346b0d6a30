package scenario_test

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestS10APollIsGrantedWhatFitsIntoItsAnswer: from the first poll on. A task that does not fit waits for the next poll and has had no attempt.
func TestS10APollIsGrantedWhatFitsIntoItsAnswer(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const requests, each = 5, 60
		payload := jsonPayload(`"` + strings.Repeat("x", 10_000) + `"`)
		for range requests {
			w.submit(many(each, &yardv1.NewTask{Type: "x", Payload: payload})...)
		}
		for _, p := range w.take(requests * each) {
			testkit.Equal(t, "grants of a task", w.grant(p), 1)
		}
	})
}
