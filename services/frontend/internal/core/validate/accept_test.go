package validate

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func under(types map[string]*yardv1.TaskType) Terms {
	return Terms{
		Domain: "shop", Now: now,
		Type:         func(name string) *yardv1.TaskType { return types[name] },
		Tasklist:     func(string) *yardv1.Tasklist { return nil },
		Trace:        func(s string) []byte { return map[string][]byte{"good": []byte("own")}[s] },
		RequestTrace: []byte("request's"),
	}
}

func TestPolicyIsResolvedFieldByField(t *testing.T) {
	types := map[string]*yardv1.TaskType{"email.send": {
		Retry:          &yardv1.RetryPolicy{MaxAttempts: 7, InitialIntervalMs: 50},
		StartToCloseMs: 1000, HeartbeatTimeoutMs: 500,
	}}
	r := request(4)
	r.Tasks[1].Type = "unknown"
	r.Tasks[2].Retry = &yardv1.RetryPolicy{MaxAttempts: 1, Backoff: 3}
	r.Tasks[2].StartToCloseMs = 2000
	got := Accept(r, under(types)).Records
	for i, want := range []*logv1.Policy{
		{MaxAttempts: 7, InitialIntervalMs: 50, Backoff: 2, MaxIntervalMs: 600_000, StartToCloseMs: 1000, HeartbeatTimeoutMs: 500, OfType: 0b1_1111_1111_1110},
		{MaxAttempts: 5, InitialIntervalMs: 1000, Backoff: 2, MaxIntervalMs: 600_000, StartToCloseMs: 300_000, OfType: 0b1_1111_1111_1110},
		{MaxAttempts: 1, InitialIntervalMs: 50, Backoff: 3, MaxIntervalMs: 600_000, StartToCloseMs: 2000, HeartbeatTimeoutMs: 500, OfType: 0b1_1111_1101_0100},
	} {
		if !proto.Equal(got[i].Policy, want) {
			t.Errorf("task %d: got %v, want %v", i, got[i].Policy, want)
		}
	}
	testkit.Equal(t, "equal policies are not shared", got[0].Policy, got[3].Policy)
}

// TestTimeToLiveIsResolvedFieldByField: the task's own, else the type's, else none.
func TestTimeToLiveIsResolvedFieldByField(t *testing.T) {
	r := request(4)
	r.Tasks[1].Type = "unknown"
	r.Tasks[2].StartWithinMs = 9000
	r.Tasks[3].FinishWithinMs = 500
	got := Accept(r, under(map[string]*yardv1.TaskType{"email.send": {StartWithinMs: 1000, FinishWithinMs: 2000}})).Records
	for i, want := range []*logv1.Expiry{
		{StartWithinMs: 1000, FinishWithinMs: 2000}, nil, {StartWithinMs: 9000, FinishWithinMs: 2000}, {StartWithinMs: 1000, FinishWithinMs: 500},
	} {
		if !proto.Equal(got[i].Expiry, want) || (want == nil) != (got[i].Expiry == nil) {
			t.Errorf("task %d: got %v, want %v", i, got[i].Expiry, want)
		}
	}
	r = request(1)
	r.Tasks[0].FinishWithinMs = 700
	if got := Accept(r, under(nil)).Records[0].Expiry; got.GetFinishWithinMs() != 700 || got.GetStartWithinMs() != 0 {
		t.Errorf("without settings: %v", got)
	}
}

// A task's own cost holds, else its type's, else 1; that is not stored.
func TestCostIsTheTasksOrItsTypes(t *testing.T) {
	cases := []struct {
		typ       string
		own, want int32
	}{{"dear", 0, 5}, {"dear", 1, 0}, {"dear", 1000, 1000}, {"none", 0, 0}, {"none", 2, 2}, {"plain", 0, 0}, {"dear", 0, 5}}
	r := request(len(cases))
	for i, c := range cases {
		r.Tasks[i].Type, r.Tasks[i].Cost = c.typ, c.own
	}
	got := Accept(r, under(map[string]*yardv1.TaskType{"dear": {Cost: 5}, "plain": {Cost: 1}})).Records
	for i, c := range cases {
		if got[i].Cost != c.want {
			t.Errorf("task %d: stored %d, want %d", i, got[i].Cost, c.want)
		}
	}
}

// A task's own priority holds, else its tasklist's, else the default.
func TestPriorityIsTheTasksOrItsTasklists(t *testing.T) {
	cases := []struct {
		tasklist  string
		own, want int32
	}{{"", 0, 2}, {"bulk", 0, 5}, {"", 4, 4}, {"none", 0, 3}, {"described", 0, 3}, {"bulk", 0, 5}}
	r := request(len(cases))
	r.Tasklist = "mail"
	for i, c := range cases {
		r.Tasks[i].Tasklist, r.Tasks[i].Priority = c.tasklist, c.own
	}
	with := under(nil)
	lists := map[string]*yardv1.Tasklist{"mail": {Priority: 2}, "bulk": {Priority: 5}, "described": {Description: "no priority"}}
	with.Tasklist = func(name string) *yardv1.Tasklist { return lists[name] }
	got := Accept(r, with)
	for i, c := range cases {
		if got.Records[i].Priority != c.want {
			t.Errorf("task %d has priority %d, want %d", i, got.Records[i].Priority, c.want)
		}
	}
	testkit.Equal(t, "the lane is", got.Lane, 2)
}

func TestDueTimes(t *testing.T) {
	ms := now.UnixMilli()
	r := request(6)
	r.Tasks[1].DelayMs = 5000
	r.Tasks[2].DelayMs = 1
	r.Tasks[3].RunAtMs = ms - 9000
	r.Tasks[4].RunAtMs = ms + 1
	r.Tasks[5].RunAtMs = ms + 2
	for i, rec := range Accept(r, under(nil)).Records {
		if want := []int64{0, ms + 5000, ms + 1, 0, 0, ms + 2}[i]; rec.DueAtMs != want || rec.DelayMs != r.Tasks[i].DelayMs {
			t.Errorf("task %d is due at %d, %d after it is stored, want %d", i, rec.DueAtMs, rec.DelayMs, want)
		}
	}
}

func TestTraces(t *testing.T) {
	r := request(3)
	r.Tasks[0].Traceparent = "good"
	r.Tasks[1].Traceparent = "bad"
	for i, rec := range Accept(r, under(nil)).Records {
		if want := []string{"own", "request's", "request's"}[i]; string(rec.Trace) != want {
			t.Errorf("task %d has %q, want %q", i, rec.Trace, want)
		}
	}
}

// Whatever the request, its lane is the best priority that is due, and its tasklist that of all its
// tasks.
func TestWhereARequestBelongs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := request(rapid.IntRange(1, 5).Draw(t, "tasks"))
		for _, task := range r.Tasks {
			task.Tasklist = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tasklist")
			task.Priority = rapid.Int32Range(0, 5).Draw(t, "priority")
			task.DelayMs = rapid.SampledFrom([]int64{0, 0, 60_000}).Draw(t, "delay")
		}
		got := Accept(r, under(nil))
		lists, best := map[string]bool{}, ids.LaneLater
		for i, rec := range got.Records {
			want := r.Tasks[i].Tasklist
			if want == "" {
				want = r.Tasklist
			}
			if rec.Tasklist != want {
				t.Fatalf("task %d belongs to %s, not to %s", i, want, rec.Tasklist)
			}
			lists[want] = true
			if p := ids.Lane(rec.Priority); rec.DueAtMs == 0 && (best == ids.LaneLater || p < best) {
				best = p
			}
		}
		if len(got.Records) != len(r.Tasks) || got.Lane != best || (got.Tasklist != "") != (len(lists) == 1) || got.Tasklist != "" && !lists[got.Tasklist] {
			t.Fatalf("%d records of lane %s and tasklist %q, want lane %s of %v", len(got.Records), got.Lane, got.Tasklist, best, lists)
		}
	})
}
