package api

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// waiting is records, the newest first; looks counts the parts that were handed out.
type waiting struct {
	records [][]byte
	all     []ids.TaskID
	looks   int
}

// partTasks is how many tasks it hands out at a time.
const partTasks = 1000

func (w *waiting) List(_ context.Context, f firing.Filter, visit func(records [][]byte) (bool, error)) (end ids.TaskID, more bool, err error) {
	first := 0
	for first < len(w.all) && f.Before != (ids.TaskID{}) && bytes.Compare(w.all[first][:], f.Before[:]) >= 0 {
		first++
	}
	upTo := min(first+f.Limit, len(w.all))
	for enough := false; first < upTo && !enough; {
		next := min(first+partTasks, upTo)
		w.looks++
		if enough, err = visit(w.records[first:next]); err != nil {
			return end, false, err
		}
		first, end = next, w.all[next-1]
	}
	return end, first < len(w.all), nil
}

// waitingTasks makes n waiting tasks of which each every-th, from the oldest, is of a partner.
func waitingTasks(t *testing.T, n, every int) *waiting {
	w := new(waiting)
	for i := n; i > 0; i-- {
		id := ids.NewTaskID(time.UnixMilli(int64(i)), 0, 1)
		r := &logv1.Record{Id: id[:], Headers: []*logv1.Header{{Name: "n", Value: fmt.Sprint(i)}}}
		if i%every == 0 {
			r.Headers = append(r.Headers, &logv1.Header{Name: "partner", Value: "acme"})
			r.Group, r.BatchId, r.Order = "acme", "b", &logv1.Order{Key: "k", Blocks: true}
		}
		data := testkit.Encoded(t, r)
		w.all, w.records = append(w.all, id), append(w.records, data)
	}
	return w
}

func TestASearchReadsUntilItHasEnough(t *testing.T) {
	w := waitingTasks(t, 5000, 500)
	found, _, more, err := search(t.Context(), w, firing.Filter{Limit: 3}, &yardv1.ListRequest{Headers: map[string]string{"partner": "acme"}})
	if err != nil || len(found) < 3 || !more || w.looks != 2 || found[2].Headers["n"] != "4000" {
		t.Errorf("%d found in %d looks, more %v: %v", len(found), w.looks, more, err)
	}
}

// TestASearchIsBounded: it says how far it came, and the next one goes on there.
func TestASearchIsBounded(t *testing.T) {
	w := waitingTasks(t, searchMax+50, 50)
	want := &yardv1.ListRequest{Headers: map[string]string{"n": "50", "partner": "acme"}}
	found, end, more, err := search(t.Context(), w, firing.Filter{Limit: 3}, want)
	if err != nil || len(found) != 0 || !more || w.looks != searchMax/partTasks || end != w.all[searchMax-1].String() {
		t.Fatalf("%d found in %d looks, to %s, more %v: %v", len(found), w.looks, end, more, err)
	}
	before, err := ids.ParseTaskID(end)
	testkit.NoError(t, err)
	found, _, more, err = search(t.Context(), w, firing.Filter{Limit: 3, Before: before}, want)
	if err != nil || len(found) != 1 || more {
		t.Errorf("%d found, more %v: %v", len(found), more, err)
	}
}

// busy has no place for one more search.
type busy struct{}

func (busy) List(context.Context, firing.Filter, func([][]byte) (bool, error)) (end ids.TaskID, more bool, err error) {
	return end, false, turns.ErrBusy
}

// I14: who is refused learns when to ask again.
func TestI14_ASearchTooManyIsRefusedWithATime(t *testing.T) {
	_, _, _, err := search(t.Context(), busy{}, firing.Filter{Limit: 3}, &yardv1.ListRequest{Group: "acme"})
	if e := fault.From(err); e == nil || e.Code != fault.ResourceExhausted || e.RetryAfter <= 0 {
		t.Errorf("got %v", err)
	}
}

func TestAListWithoutHeadersIsOneLook(t *testing.T) {
	w := waitingTasks(t, 10, 2)
	found, _, more, err := search(t.Context(), w, firing.Filter{Limit: 3}, &yardv1.ListRequest{})
	if err != nil || len(found) != 3 || !more || w.looks != 1 {
		t.Errorf("%d found in %d looks, more %v: %v", len(found), w.looks, more, err)
	}
}

// TestASearchReadsRecords for what the index does not know.
func TestASearchReadsRecords(t *testing.T) {
	for name, want := range map[string]*yardv1.ListRequest{"group": {Group: "acme"}, "batch": {BatchId: "b"}, "order key": {OrderKey: "k"}} {
		w := waitingTasks(t, 5000, 500)
		found, _, _, err := search(t.Context(), w, firing.Filter{Limit: 100}, want)
		if err != nil || len(found) != 10 || w.looks < 2 {
			t.Errorf("%s: %d found in %d looks: %v", name, len(found), w.looks, err)
		}
		for _, task := range found {
			if task.Group != "acme" || task.BatchId != "b" || task.OrderKey != "k" || task.OrderPolicy != yardv1.OrderPolicy_ORDER_POLICY_BLOCK {
				t.Errorf("%s: %v", name, task)
			}
		}
	}
}
