package validate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/duelist"
)

// TestListsByDueTime: they know tasklists, types and waiting states, and go on at a place.
func TestListsByDueTime(t *testing.T) {
	place := duelist.Place{Minute: 29_000_000, Partition: 3, Seq: 77, Index: 5}
	const hour = 3_600_000
	for _, good := range []*yardv1.ListRequest{
		{DueWithinMs: 1},
		{DueWithinMs: 366 * 24 * hour, Limit: 1000, Tasklist: "mail", Type: "email.send"},
		{DueWithinMs: hour, States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_WAITING, yardv1.TaskState_TASK_STATE_BACKOFF}, Cursor: place.String()},
	} {
		testkit.NoError(t, List(good))
	}
	for path, all := range map[string][]*yardv1.ListRequest{
		"/due_within_ms": {{DueWithinMs: -1}, {DueWithinMs: 366*24*hour + 1}},
		"/limit":         {{DueWithinMs: 1, Limit: 1001}},
		"/group":         {{DueWithinMs: 1, Group: "g"}},
		"/order_key":     {{DueWithinMs: 1, OrderKey: "k"}},
		"/blocked":       {{DueWithinMs: 1, Blocked: true}},
		"/batch_id":      {{DueWithinMs: 1, BatchId: "b"}},
		"/headers":       {{DueWithinMs: 1, Headers: map[string]string{"a": "b"}}},
		"/states/0":      {{DueWithinMs: 1, States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY}}},
		"/cursor": {
			{DueWithinMs: 1, Cursor: ids.Last.String()},
			{DueWithinMs: 1, Cursor: "@1.2.3"},
			{DueWithinMs: 1, Cursor: "@1.2.3.4x"},
			{DueWithinMs: 1, Cursor: "@-1.2.3.4"},
			{DueWithinMs: 1, Cursor: "@1.-2.3.4"},
			{DueWithinMs: 1, Cursor: "@9223372036854775807.0.1.0"},
			{Cursor: place.String()},
		},
	} {
		for _, bad := range all {
			wants{fault.InvalidArgument, path}.check(t, List(bad))
		}
	}
	got, ok := duelist.Parse(place.String())
	if !ok || got != place {
		t.Errorf("the place is %+v", got)
	}
}

// TestCountsOfTimers: spans are whole minutes, and not too many.
func TestCountsOfTimers(t *testing.T) {
	const day = 24 * 3_600_000
	var usual yardv1.CountTimersRequest
	testkit.NoError(t, CountTimers(&usual))
	testkit.Equal(t, "within by default", usual.WithinMs, day)
	testkit.Equal(t, "span by default", usual.SpanMs, day/24)
	for _, good := range []*yardv1.CountTimersRequest{
		{WithinMs: 60_000_000, SpanMs: 60_000},
		{WithinMs: 366 * day, SpanMs: day, Tasklist: "mail", Type: "email.send"},
		{WithinMs: 1, SpanMs: 7 * day},
	} {
		testkit.NoError(t, CountTimers(good))
	}
	for path, all := range map[string][]*yardv1.CountTimersRequest{
		"/within_ms": {{WithinMs: -1}, {WithinMs: 366*day + 1, SpanMs: day}},
		"/span_ms":   {{SpanMs: 59_999}, {SpanMs: 60_001}, {WithinMs: 1, SpanMs: 60_001}, {SpanMs: 7*day + 60_000}, {WithinMs: 60_000_001, SpanMs: 60_000}},
		"/tasklist":  {{Tasklist: "a b"}},
		"/type":      {{Type: "a b"}},
	} {
		for _, bad := range all {
			wants{fault.InvalidArgument, path}.check(t, CountTimers(bad))
		}
	}
}
