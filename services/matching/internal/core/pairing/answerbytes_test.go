package pairing

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAnAnswerFitsAsJSON: an answer of the worst tasks fits into a message as JSON: each header is twice as long there, and the names of the fields are added.
func TestAnAnswerFitsAsJSON(t *testing.T) {
	const message, room, most = 1 << 20, 64 << 10, 1000
	for _, quotes := range []int{0, 100, 330, 1000, 4000} {
		task := &yardv1.PolledTask{
			TaskId: strings.Repeat("t", 26), Token: strings.Repeat("k", 45), Type: "t", Tasklist: "l", Priority: 3, Attempt: 1, Failures: 1, MaxAttempts: 5,
			CreatedAtMs: 1_700_000_000_000, TimeoutMs: 300_000, HeartbeatTimeoutMs: 10_000, Traceparent: strings.Repeat("0", 55), Group: "g", Cost: 1,
			Headers: map[string]string{"h": strings.Repeat(`"`, quotes)},
		}
		resp := &yardv1.PollResponse{}
		for left := AnswerBytes(true, message-room) - task.SizeVT(); left >= 0 && len(resp.Tasks) < most; left -= task.SizeVT() {
			resp.Tasks = append(resp.Tasks, task)
		}
		data, err := codec.Marshal(codec.JSON, resp)
		testkit.NoError(t, err)
		if len(data) > message {
			t.Errorf("%d tasks with %d quotes take %d bytes", len(resp.Tasks), quotes, len(data))
		}
	}
}
