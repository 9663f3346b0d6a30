package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
)

// Tasks without keys share a row, and so do those of one order key. A task with a unique key has a row of its own, in order with its order key.
func TestTasksShareRows(t *testing.T) {
	task := func(order, unique, batch string) yard.Task {
		one := yard.Task{Type: "x", Tasklist: "l", OrderKey: order, Batch: batch, Headers: map[string]string{"is": order + "/" + unique + "/" + batch}}
		if unique != "" {
			one.Unique = &yard.Unique{Key: unique}
		}
		return one
	}
	tasks := []yard.Task{task("", "", ""), task("k", "", ""), task("", "", ""), task("k", "u", ""), task("k", "", ""), task("", "v", ""), task("", "", "b"), task("j", "", "")}
	rows, names, err := pack(t.Context(), tasks, nil, time.Now())
	check(t, err)
	var got []string
	lanesOf := map[string]int{}
	for _, r := range rows {
		var all []string
		for _, one := range r.tasks {
			all = append(all, one.Headers["is"])
			lanesOf[one.OrderKey] = r.lane
		}
		got = append(got, strings.Join(all, " "))
		if keyed := got[len(got)-1] != "// //"; keyed != (r.lane >= plainLanes) {
			t.Errorf("%q is in lane %d", got[len(got)-1], r.lane)
		}
		if key := r.tasks[0].OrderKey; key != "" && lanesOf[key] != r.lane {
			t.Errorf("the order key %q is in lanes %d and %d", key, lanesOf[key], r.lane)
		}
	}
	if want := []string{"// //", "k//", "k/u/", "k//", "/v/", "//b", "j//"}; !slices.Equal(got, want) {
		t.Errorf("the rows are %q, want %q", got, want)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(tasks) || tasks[0].Headers[headerID] != "" {
		t.Errorf("the ids are %q, the headers of the caller %v", names, tasks[0].Headers)
	}
	checkOrder(t, []yard.Task{task("k", "", "a"), task("k", "", "b"), task("k", "", "a"), task("k", "", ""), task("k", "", "b")})
	many := slices.Repeat([]yard.Task{{Type: "x", Tasklist: "l"}}, tasksMax+1)
	if rows, _, err := pack(t.Context(), many, nil, time.Now()); err != nil || len(rows) != 2 {
		t.Errorf("%d tasks are in %d rows: %v", len(many), len(rows), err)
	}
}

// checkOrder checks that tasks of one order key are in their order, and that each row has one batch.
func checkOrder(t *testing.T, tasks []yard.Task) {
	t.Helper()
	rows, names, err := pack(t.Context(), tasks, nil, time.Now())
	check(t, err)
	var got []string
	for _, r := range rows {
		for _, one := range r.tasks {
			got = append(got, one.Headers[headerID])
			if one.BatchId != r.tasks[0].BatchId {
				t.Errorf("a row has tasks of the batches %q and %q", r.tasks[0].BatchId, one.BatchId)
			}
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("the rows have the tasks %q, want %q", got, names)
	}
}

// A request leaves something of a NATS message to the headers, and has an own limit.
func TestARequestFitsAMessage(t *testing.T) {
	for message, want := range map[int64]int{0: requestBytesMax, 1 << 20: requestBytesMax, 8 << 20: requestBytesMax, 512 << 10: 448 << 10, 64 << 10: 32 << 10} {
		if got := fitting(message); got != want {
			t.Errorf("a request has %d bytes in a message of %d, want %d", got, message, want)
		}
	}
}

func TestBadTasksAreRefusedAtOnce(t *testing.T) {
	for path, bad := range map[string]yard.Task{
		"/tasks/0/type":     {Tasklist: "l"},
		"/tasks/0/tasklist": {Type: "x", Tasklist: "no way"},
		"/tasks/0/payload":  {Type: "x", Tasklist: "l", Payload: json.RawMessage("{")},
	} {
		_, _, err := pack(t.Context(), []yard.Task{bad}, nil, time.Now())
		if e := (*fault.Error)(nil); !errors.As(err, &e) || e.Code != fault.InvalidArgument || e.Path != path {
			t.Errorf("want a refusal at %s, got %v", path, err)
		}
	}
	large := yard.Task{Type: "x", Tasklist: "l", Payload: make([]byte, payloadBytesMax+1)}
	if _, _, err := pack(t.Context(), []yard.Task{large}, nil, time.Now()); err == nil {
		t.Error("a payload that is too large is taken")
	}
}

// A delay counts from the submit. If its time is over when it is sent, the task is due at once.
func TestADelayCountsFromTheSubmit(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	rows, _, err := pack(t.Context(), []yard.Task{{Type: "x", Tasklist: "l", Delay: time.Minute}}, nil, now)
	check(t, err)
	sent := func(at time.Time) int64 {
		body, err := rows[0].body()
		check(t, err)
		r, err := parse(1, body)
		check(t, err)
		due(r.tasks, at)
		return r.tasks[0].RunAtMs + r.tasks[0].DelayMs
	}
	if early, late := sent(now), sent(now.Add(time.Hour)); early != 1_060_000 || late != 0 {
		t.Errorf("it is due at %d if it is sent at once, and at %d an hour later", early, late)
	}
}

// What follows from an answer, by whether the request may have been sent before.
func TestVerdicts(t *testing.T) {
	one := func(n int) []*yardv1.NewTask { return slices.Repeat([]*yardv1.NewTask{{}}, n) }
	rows := []row{{id: 7, tasks: one(2)}, {id: 8, tasks: one(1)}}
	withClock := fault.At(fault.FailedPrecondition, "/request_id", "too old")
	withClock.Detail = map[string]string{fault.DetailNowMs: "123"}
	for name, c := range map[string]struct {
		err          error
		first, again string
	}{
		"unavailable":       {fault.New(fault.Unavailable, "x"), "clear, wait", "wait"},
		"exhausted":         {fault.New(fault.ResourceExhausted, "x"), "clear, wait", "wait"},
		"no domain":         {fault.New(fault.NotFound, "x"), "clear, wait", "wait"},
		"unknown":           {fault.New(fault.Unknown, "x"), "wait", "wait"},
		"a defect":          {fault.New(fault.Internal, "x"), "wait", "wait"},
		"a bad task":        {fault.At(fault.InvalidArgument, "/tasks/2/headers", "x"), "clear, refused 8", "wait"},
		"a bad first task":  {fault.At(fault.InvalidTime, "/tasks/1/run_at_ms", "x"), "clear, refused 7", "wait"},
		"a closed batch":    {fault.At(fault.FailedPrecondition, "/tasks/0/batch_id", "x"), "clear, refused 7", "wait"},
		"no batch":          {fault.At(fault.NotFound, "/tasks/0/batch_id", "x"), "clear, refused 7", "wait"},
		"too large":         {fault.At(fault.InvalidArgument, "/tasks", "x"), "clear, smaller", "wait"},
		"too old to store":  {withClock, "clear, wait, clock 123", "clear, wait, clock 123"},
		"forgotten":         {fault.At(fault.FailedPrecondition, "/request_id", "x"), "", "clear, unknown 7, unknown 8"},
		"ahead of its time": {fault.At(fault.InvalidTime, "/request_id", "x"), "", "wait"},
	} {
		for again, want := range map[bool]string{false: c.first, true: c.again} {
			if want == "" {
				continue // the engine answers no first try so
			}
			v := decide(&request{id: "r", rows: rows, again: again}, time.Now(), nil, c.err)
			var got []string
			if v.outcome != nil {
				got = append(got, "clear")
				for _, a := range v.outcome.aside {
					got = append(got, fmt.Sprint(a.state, " ", a.row))
				}
			}
			if v.smaller {
				got = append(got, "smaller")
			}
			if v.trouble != nil {
				got = append(got, "wait")
			}
			if v.nowMs != 0 {
				got = append(got, fmt.Sprint("clock ", v.nowMs))
			}
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("%s, sent before: %v: %s, want %s", name, again, text, want)
			}
		}
	}
}

// A row whose tasks are refused among results of others is not stored: it goes again.
func TestRefusedResultsGoAgain(t *testing.T) {
	r := &request{id: "r", rows: []row{{id: 7, tasks: make([]*yardv1.NewTask, 1)}, {id: 8, tasks: make([]*yardv1.NewTask, 1)}}}
	v := decide(r, time.Now(), &yardv1.SubmitResponse{Results: []*yardv1.SubmitResult{{Outcome: yardv1.SubmitOutcome_SUBMIT_OUTCOME_REFUSED}, {TaskId: "x", Outcome: yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED}}}, nil)
	if v.outcome == nil || !slices.Equal(v.outcome.stored, []int64{8}) || len(v.outcome.aside) != 0 {
		t.Errorf("the verdict is %+v", v.outcome)
	}
	if v := decide(r, time.Now(), &yardv1.SubmitResponse{}, nil); v.outcome != nil || v.trouble == nil {
		t.Errorf("an answer without results is taken: %+v", v)
	}
}

// With a codec a row has no content that the database could read, nor has the relay.
func TestARowIsEncoded(t *testing.T) {
	content := coded.Gzip(0, nil)
	rows, _, err := pack(t.Context(), []yard.Task{{Type: "x", Tasklist: "l", Payload: "card 4111"}}, content, time.Now())
	if err != nil || len(rows) != 1 || !coded.IsEncoded(rows[0].tasks[0].Payload.Data) {
		t.Fatalf("%v, %v", rows, err)
	}
	if _, _, err := pack(t.Context(), []yard.Task{{Type: "x", Tasklist: "l", Payload: json.RawMessage("{")}}, content, time.Now()); err == nil {
		t.Error("a payload that is not JSON was taken")
	}
}
