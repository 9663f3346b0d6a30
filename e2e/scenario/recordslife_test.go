package scenario_test

import (
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// endBatches has a batch complete whose tasks end in several ways, and the rest of another one cancelled. A third one stays open.
func endBatches(w *world) {
	w.t.Helper()
	callback := &yardv1.NewTask{Type: "callback", Tasklist: list}
	must[yardv1.CreateBatchResponse](w, "batches.create", &yardv1.CreateBatchRequest{BatchId: "import-7", Callback: callback})
	member := &yardv1.NewTask{Type: "member", BatchId: "import-7"}
	w.submit(member, member)
	all := w.take(2, "member")
	w.complete(all[0])
	w.fail(all[1], &yardv1.Failure{NonRetryable: true})
	must[yardv1.CloseBatchResponse](w, "batches.close", &yardv1.CloseBatchRequest{BatchId: "import-7"})
	w.complete(w.takeOne("callback"))

	must[yardv1.CreateBatchResponse](w, "batches.create", &yardv1.CreateBatchRequest{BatchId: "import-8"})
	rest := w.submitOne(&yardv1.NewTask{Type: "member", BatchId: "import-8"})
	for cursor := ""; ; {
		step := must[yardv1.CancelBatchResponse](w, "batches.cancel", &yardv1.CancelBatchRequest{BatchId: "import-8", Cursor: cursor})
		if cursor = step.Purged.GetNextCursor(); cursor == "" {
			break
		}
	}
	equal(w.t, "one of the rest", w.ended(rest).State.Name(), "cancelled")
	testkit.Eventually(w.t, 30*time.Second, func() error {
		if got := must[yardv1.GetBatchResponse](w, "batches.get", &yardv1.GetBatchRequest{BatchId: "import-8"}).Batch; got.EndedAtMs == 0 {
			return errors.New("it is not over: " + got.String())
		}
		return nil
	})

	must[yardv1.CreateBatchResponse](w, "batches.create", &yardv1.CreateBatchRequest{BatchId: "import-9"}) // it stays open, so snapshots have it
	w.submitOne(&yardv1.NewTask{Type: "member", BatchId: "import-9"})
	w.complete(w.takeOne("member"))
}

// changeTerms has a task take the terms of its type that came after its submit.
func changeTerms(w *world) {
	w.t.Helper()
	id := w.submitOne(&yardv1.NewTask{Type: "terms"})
	w.putType(yard.TaskType{Name: "terms", Retry: &yard.RetryPolicy{MaxAttempts: 1, InitialInterval: time.Millisecond}})
	for stateOf(w.get(id)) != "dead" { // until its owner knows the new terms
		w.fail(w.takeOne("terms"), &yardv1.Failure{DelayMs: 1})
		w.eventually(func() error {
			if state := stateOf(w.get(id)); state == "running" {
				return errors.New("the failure is not seen")
			}
			return nil
		})
	}
}

// batchRecord is an empty message of the type that is stored about batches under a subject; nil = it is about none.
func batchRecord(subject string) proto.Message {
	for filter, m := range map[string]proto.Message{
		topology.BatchHomeAny(0): new(logv1.BatchHome), topology.BatchAny(0): new(logv1.BatchClosed),
	} {
		if prefix := filter[:len(filter)-1]; len(subject) > len(prefix) && subject[:len(prefix)] == prefix && (filter != topology.BatchAny(0) || !isHome(subject)) {
			return m
		}
	}
	return nil
}

func isHome(subject string) bool { return topology.DomainOfBatchHome(0, subject) != "" }
