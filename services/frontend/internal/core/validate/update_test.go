package validate

import (
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func goodUpdate() *yardv1.UpdateRequest {
	return &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{{TaskId: goodID.String(), Priority: 2}, {TaskId: goodID.String(), RunNow: true}}}
}

func TestUpdateRefusals(t *testing.T) {
	judge := func(r *yardv1.UpdateRequest) error {
		_, err := Update(r, "shop", now, Form{})
		return err
	}
	refusals(t, goodUpdate, judge, map[string]row[*yardv1.UpdateRequest]{
		"none":         {func(r *yardv1.UpdateRequest) { r.Tasks = nil }, "/tasks"},
		"too many":     {func(r *yardv1.UpdateRequest) { r.Tasks = make([]*yardv1.TaskUpdate, UpdatesMax+1) }, "/tasks"},
		"missing":      {func(r *yardv1.UpdateRequest) { r.Tasks[1] = nil }, "/tasks/1"},
		"request":      {func(r *yardv1.UpdateRequest) { r.RequestId = "x" }, "/request_id"},
		"id":           {func(r *yardv1.UpdateRequest) { r.Tasks[1].TaskId = "x" }, "/tasks/1/task_id"},
		"nothing":      {func(r *yardv1.UpdateRequest) { r.Tasks[1].RunNow = false }, "/tasks/1"},
		"revision":     {func(r *yardv1.UpdateRequest) { r.Tasks[0].IfRevision = -1 }, "/tasks/0/if_revision"},
		"priority":     {func(r *yardv1.UpdateRequest) { r.Tasks[0].Priority = 6 }, "/tasks/0/priority"},
		"two times":    {func(r *yardv1.UpdateRequest) { r.Tasks[1].DelayMs = 5 }, "/tasks/1/run_now"},
		"three times":  {func(r *yardv1.UpdateRequest) { r.Tasks[0].DelayMs, r.Tasks[0].RunAtMs = 5, now.UnixMilli() }, "/tasks/0/delay_ms"},
		"retry":        {func(r *yardv1.UpdateRequest) { r.Tasks[0].Retry = &yardv1.RetryPolicy{MaxAttempts: -1} }, "/tasks/0/retry/max_attempts"},
		"timeout":      {func(r *yardv1.UpdateRequest) { r.Tasks[0].StartToCloseMs = 1 }, "/tasks/0/start_to_close_ms"},
		"heartbeat":    {func(r *yardv1.UpdateRequest) { r.Tasks[0].HeartbeatTimeoutMs = 1 }, "/tasks/0/heartbeat_timeout_ms"},
		"start within": {func(r *yardv1.UpdateRequest) { r.Tasks[0].StartWithinMs, r.Tasks[0].FinishWithinMs = 500, 400 }, "/tasks/0/start_within_ms"},
		"group":        {func(r *yardv1.UpdateRequest) { r.Tasks[0].Group = "a b" }, "/tasks/0/group"},
		"headers":      {func(r *yardv1.UpdateRequest) { r.Tasks[0].Headers = map[string]string{"yard-x": ""} }, "/tasks/0/headers/yard-x"},
		"large payload": {func(r *yardv1.UpdateRequest) {
			r.Tasks[0].Payload = &yardv1.Payload{Data: []byte(strings.Repeat("1", PayloadBytesMax+1))}
		}, "/tasks/0/payload"},
	})
	far := goodUpdate()
	far.Tasks[0].DelayMs = ms(AheadMax) + 1
	wants{fault.InvalidTime, "/tasks/0/delay_ms"}.check(t, judge(far))
}

// TestUpdateEvents: each entry has a name of its own, the same each time where the request has an id; a time that is over means at once.
func TestUpdateEvents(t *testing.T) {
	req := goodUpdate()
	seen := map[uint64]bool{}
	for range 2 {
		out, err := Update(req, "shop", now, Form{Fresh: ids.NewRequestID(time.Now())})
		testkit.NoError(t, err)
		for _, o := range out {
			if u := o.Event.Update; u.Request == 0 || seen[u.Request] || o.Event.Domain != "shop" || o.ID != goodID {
				t.Errorf("%v", o.Event)
			}
			seen[o.Event.Update.Request] = true
		}
	}
	req.RequestId = ids.NewRequestID(now).String()
	first, _ := Update(req, "shop", now, Form{})
	again, err := Update(req, "shop", now.Add(time.Second), Form{})
	if err != nil || first[0].Event.Update.Request != again[0].Event.Update.Request || first[0].Event.Update.Request == first[1].Event.Update.Request {
		t.Errorf("%v, %v: %v", first[0].Event.Update, again[0].Event.Update, err)
	}
	for at, want := range map[int64]bool{-PastGrace.Milliseconds(): true, 1: true, 5000: false} {
		req.Tasks[0] = &yardv1.TaskUpdate{TaskId: goodID.String(), RunAtMs: now.UnixMilli() + at}
		out, err := Update(req, "shop", now, Form{})
		testkit.NoError(t, err)
		if u := out[0].Event.Update; u.RunNow != want || want != (u.DueAtMs == 0) {
			t.Errorf("at %+d: %v", at, u)
		}
	}
	req.Tasks[0] = &yardv1.TaskUpdate{TaskId: goodID.String(), DelayMs: 1}
	out, err := Update(req, "shop", now, Form{})
	testkit.NoError(t, err)
	if u := out[0].Event.Update; u.RunNow || u.DueAtMs != now.UnixMilli()+1 || u.DelayMs != 1 {
		t.Errorf("after 1 ms: %v", u)
	}
}

// TestEqualUpdatesHaveOneName, since history makes an update of a name once. Others of the same task have names of their own.
func TestEqualUpdatesHaveOneName(t *testing.T) {
	a, b := ids.NewTaskID(time.Now(), 0, 1).String(), ids.NewTaskID(time.Now(), 0, 2).String()
	out, err := Update(&yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{
		{TaskId: a, Priority: 1}, {TaskId: b, Priority: 1}, {TaskId: a, Priority: 1}, {TaskId: a, Priority: 2},
	}}, "shop", time.Now(), Form{})
	testkit.NoError(t, err)
	name := func(i int) uint64 { return out[i].Event.Update.Request }
	if name(0) != name(2) || name(0) == name(1) || name(0) == name(3) || name(1) == name(3) {
		t.Errorf("names %d, %d, %d and %d", name(0), name(1), name(2), name(3))
	}
}
