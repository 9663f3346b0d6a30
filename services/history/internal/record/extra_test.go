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

// TestExtrasGoThroughMemory: what is parked, carried, archived or dead has the instants that were fixed when it was read first, costs what it did, and
// knows its updates. A task without any of these is stored as before.
func TestExtrasGoThroughMemory(t *testing.T) {
	for name, change := range map[string]func(*logv1.Record){
		"time to live": func(r *logv1.Record) {
			r.Expiry = &logv1.Expiry{StartWithinMs: 1, FinishWithinMs: 2, StartByMs: 3, FinishByMs: 4}
		},
		"cost": func(r *logv1.Record) { r.Cost = 7 },
		"updates": func(r *logv1.Record) {
			r.Updates = &logv1.Updates{Applied: 90, Seq: 7, Request: 4, Refused: true, AtMs: 44, Passed: 5, PassedNow: 3}
		},
		"one update": func(r *logv1.Record) { r.Updates = &logv1.Updates{Applied: 1} },
	} {
		with := changed(change)
		data, err := (&logv1.Batch{Tasks: []*logv1.Record{with, readable, with}}).MarshalVT()
		testkit.NoError(t, err)
		decoder, encoder := record.NewDecoder(), new(record.Encoder)
		for range 2 { // its messages are used again
			tasks, _, err := decoder.Submits(data, time.Time{})
			if err != nil || len(tasks) != 3 {
				t.Fatal(name, len(tasks), err)
			}
			for i, want := range []*logv1.Record{with, readable, with} {
				got, shown := encoder.Record(&tasks[i].Task), record.Public(&tasks[i].Task, true, 0)
				if !proto.Equal(got.Expiry, want.Expiry) || got.Cost != want.Cost || !proto.Equal(got.Updates, want.Updates) {
					t.Errorf("%s, task %d: written %v", name, i, got)
				}
				if shown.StartByMs != want.Expiry.GetStartByMs() || shown.FinishByMs != want.Expiry.GetFinishByMs() || shown.Cost != want.Cost {
					t.Errorf("%s, task %d: shown %v", name, i, shown)
				}
			}
			if tasks[1].Extra != nil {
				t.Errorf("%s: a task without has %+v", name, tasks[1].Extra)
			}
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
			Jitter: 2, MaxDeliveries: 10, OnLost: 3, OnTimeout: 2, OfType: 1<<12 | 2, TypeRevision: 77,
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
