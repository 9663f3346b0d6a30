package scenario_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// TestHeaders: they come to the worker, stay with the task wherever it goes, and find it there.
func TestHeaders(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		headers := func(where string) map[string]string {
			return map[string]string{"partner": "acme", "where": where, "Text.1_-": "été \"x\"\n"}
		}
		kept := func(what string, got map[string]string, where string) {
			t.Helper()
			if !maps.Equal(got, headers(where)) {
				t.Errorf("%s has the headers %q", what, got)
			}
		}
		retry := &yardv1.RetryPolicy{MaxAttempts: 1}
		byState := map[string]string{}
		for _, where := range []string{"completed", "dead", "running", "ready"} {
			byState[where] = w.submitOne(&yardv1.NewTask{Type: where, Retry: retry, Headers: headers(where)})
			w.reach(byState[where], "ready")
		}
		byState["waiting"] = w.submitOne(&yardv1.NewTask{Type: "later", DelayMs: 3_600_000, Headers: headers("waiting")})
		w.reach(byState["waiting"], "waiting")
		w.reach(w.submitOne(&yardv1.NewTask{Type: "ready"}), "ready")
		w.reach(w.submitOne(&yardv1.NewTask{Type: "later", DelayMs: 3_600_000}), "waiting")

		for _, state := range []string{"completed", "dead", "running"} {
			p := w.takeOne(state)
			kept("a granted task", p.Headers, state)
			switch state {
			case "completed":
				equal(t, "verdict", w.complete(p), "OK")
			case "dead":
				equal(t, "verdict", w.fail(p, &yardv1.Failure{Message: "no"}), "OK")
			}
		}
		record := w.deadLetter(list, byState["dead"])
		equal(t, "headers of the dead letter", len(record.Headers), 3)
		for state, id := range byState {
			kept(state, w.reach(id, state).Headers, state)
			// Lists are not in one breath with the log: one task may come after another question.
			w.eventually(func() error {
				found, err := w.client.List(w.soon(), yard.Filter{Headers: map[string]string{"partner": "acme", "where": state}})
				if err != nil || len(found) != 1 || found[0].ID != id || !maps.Equal(found[0].Headers, headers(state)) {
					return fmt.Errorf("%s: found %v, %v", state, found, err)
				}
				return nil
			})
		}
		none, err := w.client.List(w.soon(), yard.Filter{Headers: map[string]string{"partner": "ACME"}})
		if err != nil || len(none) > 0 {
			t.Errorf("found %v, %v", none, err)
		}
	})
}
