package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// TestIDsGivenTwiceCountOnce: an entry that a request repeats gets the verdict of the first one, and nothing happens twice.
func TestIDsGivenTwiceCountOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		codes := func(verdicts []*yardv1.Verdict) string {
			var all []string
			for _, v := range verdicts {
				all = append(all, v.Code)
			}
			return strings.Join(all, " ")
		}
		all := w.dead(3, "x", "network")
		a, b, c := all[0], all[1], all[2]
		resp := w.redrive(&yardv1.RedriveRequest{TaskIds: []string{a, a, b, a}, Preview: true})
		equal(t, "previewed", fmt.Sprint(resp.Found, " ", codes(resp.Verdicts)), "2 OK OK OK OK")
		resp = w.redrive(&yardv1.RedriveRequest{TaskIds: []string{a, a, b, a}})
		equal(t, "redriven", fmt.Sprint(resp.Found, resp.Redriven, resp.Refused, " ", codes(resp.Verdicts)), "2 2 0 OK OK OK OK")
		equal(t, "named", fmt.Sprint(resp.Verdicts[0].TaskId == a, resp.Verdicts[2].TaskId == b, resp.Verdicts[3].TaskId == a), "true true true")
		resp = w.redrive(&yardv1.RedriveRequest{TaskIds: []string{a, b, b}})
		equal(t, "refused", fmt.Sprint(resp.Redriven, resp.Refused, len(resp.Verdicts)), "0 2 3")
		purged := must[yardv1.PurgeDeadLettersResponse](w, "deadletters.purge", &yardv1.PurgeDeadLettersRequest{TaskIds: []string{c, c}})
		equal(t, "purged", fmt.Sprint(purged.Found, purged.Purged), "1 1")

		polled := w.take(2, "x")
		first, second := polled[0], polled[1]
		beat := &yardv1.Beat{TaskId: first.TaskId, Token: first.Token}
		equal(t, "heartbeats", codes(w.outcome("tasks.heartbeat", &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{beat, beat}}).Verdicts), "OK OK")
		done := &yardv1.Completion{TaskId: first.TaskId, Token: first.Token}
		equal(t, "completed", codes(w.outcome("tasks.complete", &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{done, done}}).Verdicts), "OK OK")
		failed := &yardv1.Failure{TaskId: second.TaskId, Token: second.Token, Message: "no"}
		equal(t, "failed", codes(w.outcome("tasks.fail", &yardv1.FailRequest{Tasks: []*yardv1.Failure{failed, failed}}).Verdicts), "OK OK")
		equal(t, "failures", w.get(second.TaskId).Failures, int32(1))

		later := w.submitOne(&yardv1.NewTask{Type: "y", DelayMs: 3_600_000})
		update := &yardv1.TaskUpdate{TaskId: later, Priority: 1, IfRevision: w.get(later).Revision}
		updated := must[yardv1.OutcomeResponse](w, "tasks.update", &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{update, update}})
		equal(t, "updated", codes(updated.Verdicts), "OK OK")
		equal(t, "revision", w.get(later).Revision, update.IfRevision+1)
		equal(t, "cancelled", codes(w.outcome("tasks.cancel", &yardv1.CancelRequest{TaskIds: []string{later, later}}).Verdicts), "OK OK")
		equal(t, "state", stateOf(w.ended(later)), "cancelled")
	})
}
