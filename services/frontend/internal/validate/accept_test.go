package validate

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

func terms(types map[string]*yardv1.TaskType) Terms {
	return Terms{
		Domain: "shop", Now: now,
		Type:         func(name string) *yardv1.TaskType { return types[name] },
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
	got := Accept(r, terms(types)).Records
	for i, want := range []*logv1.Policy{
		{MaxAttempts: 7, InitialIntervalMs: 50, Backoff: 2, MaxIntervalMs: 600_000, StartToCloseMs: 1000, HeartbeatTimeoutMs: 500},
		{MaxAttempts: 5, InitialIntervalMs: 1000, Backoff: 2, MaxIntervalMs: 600_000, StartToCloseMs: 300_000},
		{MaxAttempts: 1, InitialIntervalMs: 50, Backoff: 3, MaxIntervalMs: 600_000, StartToCloseMs: 2000, HeartbeatTimeoutMs: 500},
	} {
		if !proto.Equal(got[i].Policy, want) {
			t.Errorf("task %d: got %v, want %v", i, got[i].Policy, want)
		}
	}
	if got[0].Policy != got[3].Policy {
		t.Error("equal policies are not shared")
	}
}

func TestDueTimes(t *testing.T) {
	ms := now.UnixMilli()
	r := request(6)
	r.Tasks[1].DelayMs = 5000
	r.Tasks[2].DelayMs = 1
	r.Tasks[3].RunAtMs = ms - 9000
	r.Tasks[4].RunAtMs = ms + 1
	r.Tasks[5].RunAtMs = ms + 2
	for i, rec := range Accept(r, terms(nil)).Records {
		if want := []int64{0, ms + 5000, 0, 0, 0, ms + 2}[i]; rec.DueAtMs != want {
			t.Errorf("task %d is due at %d, want %d", i, rec.DueAtMs, want)
		}
	}
}

func TestTraces(t *testing.T) {
	r := request(3)
	r.Tasks[0].Traceparent = "good"
	r.Tasks[1].Traceparent = "bad"
	for i, rec := range Accept(r, terms(nil)).Records {
		if want := []string{"own", "request's", "request's"}[i]; string(rec.Trace) != want {
			t.Errorf("task %d has %q, want %q", i, rec.Trace, want)
		}
	}
}

// Whatever the request, its shares hold each task once, in the order of the
// request, in its tasklist; and the lane is the best priority that is due.
func TestSharesPartitionTheRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := request(rapid.IntRange(1, 30).Draw(t, "tasks"))
		for _, task := range r.Tasks {
			task.Tasklist = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tasklist")
			task.Priority = rapid.Int32Range(0, 5).Draw(t, "priority")
			task.DelayMs = rapid.SampledFrom([]int64{0, 0, 60_000}).Draw(t, "delay")
		}
		got := Accept(r, terms(nil))
		index := map[*logv1.Record]int{}
		for i, rec := range got.Records {
			index[rec] = i
		}
		seen, lists := map[*logv1.Record]bool{}, map[string]bool{}
		for _, s := range got.Shares {
			if lists[s.Tasklist] || len(s.Records) == 0 {
				t.Fatalf("tasklist %s comes twice or empty", s.Tasklist)
			}
			lists[s.Tasklist] = true
			last, best := -1, ids.LaneLater
			for _, rec := range s.Records {
				if rec.Tasklist != s.Tasklist || seen[rec] || index[rec] <= last {
					t.Fatalf("record %d in share %s", index[rec], s.Tasklist)
				}
				seen[rec], last = true, index[rec]
				if p := ids.Lane(rec.Priority); rec.DueAtMs == 0 && (best == ids.LaneLater || p < best) {
					best = p
				}
			}
			if s.Lane != best {
				t.Fatalf("lane %s, want %s", s.Lane, best)
			}
		}
		if len(seen) != len(r.Tasks) {
			t.Fatalf("%d of %d tasks", len(seen), len(r.Tasks))
		}
	})
}
