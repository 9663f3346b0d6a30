package schedules

import (
	"reflect"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// A schedule comes back as it was put: no field is lost on either way.
func TestAScheduleComesBackAsItWasPut(t *testing.T) {
	put := Schedule{
		Name: "a", Cron: []string{"0 2 * * *"}, Every: time.Minute, TimeZone: "Europe/Berlin", ExcludeDates: []string{"12-24"}, ExcludeCron: []string{"* * 1 * *"},
		Jitter: time.Second, StartAt: time.UnixMilli(1000), EndAt: time.UnixMilli(2000), RunsMax: 3, Overlap: OverlapCancelOther, Missed: MissedAll, CatchUp: time.Hour,
		Paused: true, Note: "n",
		Task: yard.Task{
			Type: "t", Tasklist: "l", Payload: yard.Payload{Data: []byte("1")}, Priority: 2, Headers: map[string]string{"a": "b"}, Group: "g", Cost: 4,
			StartToClose: time.Minute, HeartbeatTimeout: time.Second, StartWithin: time.Hour, FinishWithin: 2 * time.Hour, Retry: &yard.RetryPolicy{MaxAttempts: 3, Jitter: yard.JitterFull, OnLost: "retry", OnTimeout: "retry"},
		},
	}
	wire, err := put.Wire()
	checktest.NoError(t, err)
	back := scheduleOf(wire)
	back.Task.Retry, put.Task.Retry = nil, nil
	if !reflect.DeepEqual(back, put) {
		t.Errorf("got %+v\nwant %+v", back, put)
	}
	if wire.Task.Retry.MaxAttempts != 3 {
		t.Errorf("the policy is %v", wire.Task.Retry)
	}
	var empty Schedule
	wire, err = empty.Wire()
	checktest.NoError(t, err)
	if back := scheduleOf(wire); !reflect.DeepEqual(back, empty) {
		t.Errorf("an empty one came back as %+v", back)
	}
}

func TestAnInfoIsRead(t *testing.T) {
	w := &yardv1.ScheduleInfo{
		Schedule: &yardv1.Schedule{Name: "a"}, Revision: 2, CreatedAtMs: 3, NextMs: []int64{4, 5}, Runs: 6, Skipped: 7, Missed: 8, Waiting: 9, Running: 10,
		Recent: []*yardv1.ScheduleRun{{RunAtMs: 11, StartedAtMs: 12, TaskId: "t", Reason: "trigger"}, {RunAtMs: 13, Reason: "missed"}},
	}
	want := &Info{
		wire: w, Schedule: Schedule{Name: "a"}, Revision: 2, CreatedAt: time.UnixMilli(3), Next: []time.Time{time.UnixMilli(4), time.UnixMilli(5)}, Runs: 6, Skipped: 7, Missed: 8, Waiting: 9, Running: 10,
		Recent: []Run{{RunAt: time.UnixMilli(11), StartedAt: time.UnixMilli(12), TaskID: "t", Reason: "trigger"}, {RunAt: time.UnixMilli(13), Reason: "missed"}},
	}
	if got := infoOf(w); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// Rules and payloads that cannot be sent are refused before anything is sent.
func TestAScheduleThatCannotBeSentIsRefused(t *testing.T) {
	for path, s := range map[string]Schedule{
		"/schedule/overlap":      {Overlap: "never"},
		"/schedule/missed":       {Missed: "SKIP"},
		"/schedule/task/payload": {Task: yard.Task{Payload: func() {}}},
	} {
		_, err := s.Wire()
		if e := fault.From(err); e == nil || e.Code != fault.InvalidArgument || e.Path != path {
			t.Errorf("got %v, want %s", err, path)
		}
	}
}
