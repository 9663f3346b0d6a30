package record_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestHeadersGoThroughMemory: what is parked, carried, archived or dead has the headers it came with, and
// nothing of them lies in the buffer of the message that they came in.
func TestHeadersGoThroughMemory(t *testing.T) {
	headers := []*logv1.Header{{Name: "a", Value: "1"}, {Name: "empty"}, {Name: "z", Value: "26"}}
	with := changed(func(r *logv1.Record) { r.Headers = headers })
	data, err := (&logv1.Batch{Tasks: []*logv1.Record{with, readable, with}}).MarshalVT()
	testkit.NoError(t, err)
	tasks, _, err := record.NewDecoder().Submits(data, time.Time{})
	if err != nil || len(tasks) != 3 {
		t.Fatal(len(tasks), err)
	}
	clear(data)
	testkit.Equal(t, "a task without headers", len(tasks[1].HeaderList()), 0)
	for _, i := range []int{0, 2} {
		got := new(record.Encoder).Record(&tasks[i].Task).Headers
		if !proto.Equal(&logv1.Record{Headers: got}, &logv1.Record{Headers: headers}) {
			t.Errorf("written %v", got)
		}
		shown := record.Public(&tasks[i].Task, true, 0).Headers
		if !maps.Equal(shown, map[string]string{"a": "1", "empty": "", "z": "26"}) {
			t.Errorf("shown %v", shown)
		}
	}
}

// TestTimeToLiveGoesThroughMemory: what comes back from a store has the instants that were fixed when it was read first.
func TestTimeToLiveGoesThroughMemory(t *testing.T) {
	fixed := &logv1.Expiry{StartWithinMs: 1, FinishWithinMs: 2, StartByMs: 3, FinishByMs: 4}
	with := changed(func(r *logv1.Record) { r.Expiry = fixed })
	data, err := (&logv1.Batch{Tasks: []*logv1.Record{with, readable, with}}).MarshalVT()
	testkit.NoError(t, err)
	decoder := record.NewDecoder()
	for range 2 { // its messages are used again
		tasks, _, err := decoder.Submits(data, time.Time{})
		if err != nil || len(tasks) != 3 {
			t.Fatal(len(tasks), err)
		}
		for i, want := range []*logv1.Expiry{fixed, nil, fixed} {
			if got := new(record.Encoder).Record(&tasks[i].Task).Expiry; !proto.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("task %d: written %v, want %v", i, got, want)
			}
			if shown := record.Public(&tasks[i].Task, true, 0); shown.StartByMs != want.GetStartByMs() || shown.FinishByMs != want.GetFinishByMs() {
				t.Errorf("task %d: shown %v", i, shown)
			}
		}
	}
}

// TestCostGoesThroughMemory: what is parked, carried, archived or dead costs what it did, and a task that costs one start is stored as before.
func TestCostGoesThroughMemory(t *testing.T) {
	data, err := (&logv1.Batch{Tasks: []*logv1.Record{changed(func(r *logv1.Record) { r.Cost = 7 }), readable}}).MarshalVT()
	testkit.NoError(t, err)
	decoder := record.NewDecoder()
	for range 2 { // its messages are used again
		tasks, _, err := decoder.Submits(data, time.Time{})
		if err != nil || len(tasks) != 2 {
			t.Fatal(len(tasks), err)
		}
		for i, want := range []int32{7, 0} {
			task := &tasks[i].Task
			if stored, shown := new(record.Encoder).Record(task).Cost, record.Public(task, true, 0).Cost; stored != want || shown != want {
				t.Errorf("task %d: stored %d, shown %d, want %d", i, stored, shown, want)
			}
		}
		if tasks[1].Extra != nil {
			t.Errorf("a task that costs one start has %+v", tasks[1].Extra)
		}
	}
}

// TestRulesOfPoliciesGoThroughMemory: what is parked, carried, archived or dead has the policy it came with, and what it was handed back;
// equal ones are one value, and nothing of them lies in the buffer of the message that they came in.
func TestRulesOfPoliciesGoThroughMemory(t *testing.T) {
	rules := func(errType string, attempts int32) *logv1.Policy {
		return &logv1.Policy{
			MaxAttempts: 3, InitialIntervalMs: 1, Backoff: 2, MaxIntervalMs: 3, StartToCloseMs: 4, HeartbeatTimeoutMs: 5,
			NonRetryable: []string{errType, "b"}, ByError: []*logv1.ErrorRetry{
				{ErrorType: "c", InitialIntervalMs: 6, Backoff: 7, MaxIntervalMs: 8, MaxAttempts: attempts}, {ErrorType: "d"},
			},
			Jitter: 2, MaxDeliveries: 10, OnLost: 3, OnTimeout: 2,
		}
	}
	policies := []*logv1.Policy{rules("a", 9), {MaxAttempts: 3, StartToCloseMs: 4}, rules("a", 9), rules("a", 10), rules("ab", 9)}
	// Lists that are the same text in other places.
	policies = append(policies, &logv1.Policy{MaxAttempts: 1, NonRetryable: []string{"xy", "z"}}, &logv1.Policy{MaxAttempts: 1, NonRetryable: []string{"x", "yz"}})
	batch := &logv1.Batch{}
	for _, p := range policies {
		batch.Tasks = append(batch.Tasks, changed(func(r *logv1.Record) { r.Policy, r.HandedBack = p, 11 }))
	}
	data, err := batch.MarshalVT()
	testkit.NoError(t, err)
	decoder, encoder := record.NewDecoder(), new(record.Encoder)
	for range 2 { // its messages are used again
		buffer := slices.Clone(data)
		tasks, _, err := decoder.Submits(buffer, time.Time{})
		if err != nil || len(tasks) != len(policies) {
			t.Fatal(len(tasks), err)
		}
		clear(buffer)
		for i, want := range policies {
			r := encoder.Record(&tasks[i].Task)
			if !proto.Equal(r.Policy, want) || r.HandedBack != 11 {
				t.Errorf("task %d: written %v, handed back %d", i, r.Policy, r.HandedBack)
			}
		}
		if tasks[0].Policy != tasks[2].Policy || tasks[0].Policy == tasks[3].Policy || tasks[0].Policy == tasks[4].Policy || tasks[1].Policy.Rules != nil {
			t.Error("equal policies are one, and others are not")
		}
	}
}

// TestADecoderRemembersAFewRules: it starts again past its bound, and goes on to read.
func TestADecoderRemembersAFewRules(t *testing.T) {
	decoder := record.NewDecoder()
	for i := range 1000 {
		want := &logv1.Policy{MaxAttempts: 1, NonRetryable: []string{strconv.Itoa(i)}}
		e, err := decoder.Entry(changed(func(r *logv1.Record) { r.Policy = want }))
		if err != nil || !proto.Equal(new(record.Encoder).Record(&e.Task).Policy, want) {
			t.Fatalf("%d: %v, %v", i, e, err)
		}
	}
}
