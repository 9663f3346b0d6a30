package validate

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var now = time.UnixMilli(1_800_000_000_000)

// wants is the refusal a bad input must lead to.
type wants struct {
	code fault.Code
	path string
}

func (w wants) check(t *testing.T, err error) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a refusal at %s", err, w.path)
	}
	if e.Code != w.code || e.Path != w.path {
		t.Errorf("got %s at %q (%s), want %s at %q", e.Code, e.Path, e.Message, w.code, w.path)
	}
	if e.Message == "" {
		t.Error("no message")
	}
}

// request returns a good submit of n tasks.
func request(n int) *yardv1.SubmitRequest {
	r := &yardv1.SubmitRequest{Tasklist: "main"}
	for range n {
		r.Tasks = append(r.Tasks, &yardv1.NewTask{Type: "email.send", Payload: &yardv1.Payload{Data: []byte(`{"to":1}`)}})
	}
	return r
}

func TestSubmitRefuses(t *testing.T) {
	const bad, badTime = fault.InvalidArgument, fault.InvalidTime
	task := func(change func(*yardv1.NewTask)) func(*yardv1.SubmitRequest) {
		return func(r *yardv1.SubmitRequest) { change(r.Tasks[3]) }
	}
	retry := func(change func(*yardv1.RetryPolicy)) func(*yardv1.SubmitRequest) {
		return task(func(t *yardv1.NewTask) { t.Retry = &yardv1.RetryPolicy{}; change(t.Retry) })
	}
	for name, c := range map[string]struct {
		change func(*yardv1.SubmitRequest)
		wants
	}{
		"no tasks":         {func(r *yardv1.SubmitRequest) { r.Tasks = nil }, wants{bad, "/tasks"}},
		"1001 tasks":       {func(r *yardv1.SubmitRequest) { *r = *request(1001) }, wants{bad, "/tasks"}},
		"bad tasklist":     {func(r *yardv1.SubmitRequest) { r.Tasklist = "a.b" }, wants{bad, "/tasklist"}},
		"null task":        {func(r *yardv1.SubmitRequest) { r.Tasks[3] = nil }, wants{bad, "/tasks/3"}},
		"no tasklist":      {func(r *yardv1.SubmitRequest) { r.Tasklist = "" }, wants{bad, "/tasks/0/tasklist"}},
		"wait for several": {func(r *yardv1.SubmitRequest) { r.Wait = true }, wants{bad, "/wait"}},
		"wait_ms alone":    {func(r *yardv1.SubmitRequest) { r.WaitMs = 1000 }, wants{bad, "/wait_ms"}},
		"negative wait":    {func(r *yardv1.SubmitRequest) { r.Wait, r.Tasks, r.WaitMs = true, r.Tasks[:1], -1 }, wants{bad, "/wait_ms"}},
		"long wait":        {func(r *yardv1.SubmitRequest) { r.Wait, r.Tasks, r.WaitMs = true, r.Tasks[:1], 60_001 }, wants{bad, "/wait_ms"}},

		"own bad tasklist":  {task(func(t *yardv1.NewTask) { t.Tasklist = "*" }), wants{bad, "/tasks/3/tasklist"}},
		"missing type":      {task(func(t *yardv1.NewTask) { t.Type = "" }), wants{bad, "/tasks/3/type"}},
		"bad type":          {task(func(t *yardv1.NewTask) { t.Type = "a b" }), wants{bad, "/tasks/3/type"}},
		"not UTF-8 type":    {task(func(t *yardv1.NewTask) { t.Type = "\xff" }), wants{bad, "/tasks/3/type"}},
		"long type":         {task(func(t *yardv1.NewTask) { t.Type = strings.Repeat("x", 65) }), wants{bad, "/tasks/3/type"}},
		"priority 6":        {task(func(t *yardv1.NewTask) { t.Priority = 6 }), wants{bad, "/tasks/3/priority"}},
		"negative priority": {task(func(t *yardv1.NewTask) { t.Priority = -1 }), wants{bad, "/tasks/3/priority"}},

		"large payload":    {task(func(t *yardv1.NewTask) { t.Payload.Data = make([]byte, 256<<10+1) }), wants{bad, "/tasks/3/payload"}},
		"not JSON":         {task(func(t *yardv1.NewTask) { t.Payload.Data = []byte("{") }), wants{bad, "/tasks/3/payload"}},
		"two JSON values":  {task(func(t *yardv1.NewTask) { t.Payload.Data = []byte("1 2") }), wants{bad, "/tasks/3/payload"}},
		"JSON not UTF-8":   {task(func(t *yardv1.NewTask) { t.Payload.Data = []byte("\"\xff\"") }), wants{bad, "/tasks/3/payload"}},
		"unknown encoding": {task(func(t *yardv1.NewTask) { t.Payload.Encoding = 7 }), wants{bad, "/tasks/3/payload"}},

		"negative delay":     {task(func(t *yardv1.NewTask) { t.DelayMs = -1 }), wants{bad, "/tasks/3/delay_ms"}},
		"long delay":         {task(func(t *yardv1.NewTask) { t.DelayMs = 31_622_400_001 }), wants{badTime, "/tasks/3/delay_ms"}},
		"longest delay":      {task(func(t *yardv1.NewTask) { t.DelayMs = math.MaxInt64 }), wants{badTime, "/tasks/3/delay_ms"}},
		"delay and run_at":   {task(func(t *yardv1.NewTask) { t.DelayMs, t.RunAtMs = 1, now.UnixMilli() }), wants{bad, "/tasks/3/delay_ms"}},
		"run_at in the past": {task(func(t *yardv1.NewTask) { t.RunAtMs = now.UnixMilli() - 10_001 }), wants{badTime, "/tasks/3/run_at_ms"}},
		"run_at too far":     {task(func(t *yardv1.NewTask) { t.RunAtMs = now.UnixMilli() + 31_622_400_001 }), wants{badTime, "/tasks/3/run_at_ms"}},
		"run_at farthest":    {task(func(t *yardv1.NewTask) { t.RunAtMs = math.MaxInt64 }), wants{badTime, "/tasks/3/run_at_ms"}},
		"negative run_at":    {task(func(t *yardv1.NewTask) { t.RunAtMs = math.MinInt64 }), wants{badTime, "/tasks/3/run_at_ms"}},

		"negative attempts":  {retry(func(r *yardv1.RetryPolicy) { r.MaxAttempts = -1 }), wants{bad, "/tasks/3/retry/max_attempts"}},
		"attempts":           {retry(func(r *yardv1.RetryPolicy) { r.MaxAttempts = 10_001 }), wants{bad, "/tasks/3/retry/max_attempts"}},
		"interval":           {retry(func(r *yardv1.RetryPolicy) { r.InitialIntervalMs = 86_400_001 }), wants{bad, "/tasks/3/retry/initial_interval_ms"}},
		"small backoff":      {retry(func(r *yardv1.RetryPolicy) { r.Backoff = 0.5 }), wants{bad, "/tasks/3/retry/backoff"}},
		"backoff NaN":        {retry(func(r *yardv1.RetryPolicy) { r.Backoff = math.NaN() }), wants{bad, "/tasks/3/retry/backoff"}},
		"large backoff":      {retry(func(r *yardv1.RetryPolicy) { r.Backoff = 101 }), wants{bad, "/tasks/3/retry/backoff"}},
		"max interval":       {retry(func(r *yardv1.RetryPolicy) { r.MaxIntervalMs = 2_592_000_001 }), wants{bad, "/tasks/3/retry/max_interval_ms"}},
		"short attempt":      {task(func(t *yardv1.NewTask) { t.StartToCloseMs = 99 }), wants{bad, "/tasks/3/start_to_close_ms"}},
		"long attempt":       {task(func(t *yardv1.NewTask) { t.StartToCloseMs = 604_800_001 }), wants{bad, "/tasks/3/start_to_close_ms"}},
		"short start":        {task(func(t *yardv1.NewTask) { t.StartWithinMs = 99 }), wants{bad, "/tasks/3/start_within_ms"}},
		"long start":         {task(func(t *yardv1.NewTask) { t.StartWithinMs = 31_622_400_001 }), wants{bad, "/tasks/3/start_within_ms"}},
		"short finish":       {task(func(t *yardv1.NewTask) { t.FinishWithinMs = 99 }), wants{bad, "/tasks/3/finish_within_ms"}},
		"negative finish":    {task(func(t *yardv1.NewTask) { t.FinishWithinMs = -1 }), wants{bad, "/tasks/3/finish_within_ms"}},
		"start after finish": {task(func(t *yardv1.NewTask) { t.StartWithinMs, t.FinishWithinMs = 201, 200 }), wants{bad, "/tasks/3/start_within_ms"}},
		"short heartbeat":    {task(func(t *yardv1.NewTask) { t.HeartbeatTimeoutMs = 99 }), wants{bad, "/tasks/3/heartbeat_timeout_ms"}},
		"long heartbeat":     {task(func(t *yardv1.NewTask) { t.StartToCloseMs, t.HeartbeatTimeoutMs = 200, 201 }), wants{bad, "/tasks/3/heartbeat_timeout_ms"}},
		"negative heartbeat": {task(func(t *yardv1.NewTask) { t.HeartbeatTimeoutMs = -1 }), wants{bad, "/tasks/3/heartbeat_timeout_ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(5)
			c.change(r)
			c.check(t, Submit(r, now, Form{}))
		})
	}
}

func TestSubmitTakesEveryEdge(t *testing.T) {
	r := request(1000)
	r.Tasks[0].Payload = &yardv1.Payload{Data: bytes.Repeat([]byte{'1'}, 256<<10)}
	r.Tasks[1].Payload = &yardv1.Payload{Data: []byte("\xff"), Encoding: yardv1.Encoding_ENCODING_BINARY}
	r.Tasks[2].Payload = nil
	r.Tasks[3].Priority = 5
	r.Tasks[4].DelayMs = 31_622_400_000
	r.Tasks[5].RunAtMs = now.UnixMilli() - 10_000
	r.Tasks[6].RunAtMs = now.UnixMilli() + 31_622_400_000
	r.Tasks[7].Retry = &yardv1.RetryPolicy{MaxAttempts: 10_000, InitialIntervalMs: 86_400_000, Backoff: 100, MaxIntervalMs: 2_592_000_000}
	r.Tasks[8].StartToCloseMs, r.Tasks[8].HeartbeatTimeoutMs = 604_800_000, 604_800_000
	r.Tasks[12].StartToCloseMs, r.Tasks[12].HeartbeatTimeoutMs = 100, 100
	r.Tasks[9].Tasklist = "other"
	r.Tasks[10].Traceparent = "malformed is ignored, not refused"
	testkit.NoError(t, Submit(r, now, Form{}))
	one := request(1)
	one.WaitMs = 60_000
	one.Wait = true
	testkit.NoError(t, Submit(one, now, Form{}))
}

func TestDomainToken(t *testing.T) {
	for _, s := range []string{"", "admin", "a.b", "é", strings.Repeat("x", 65)} {
		wants{fault.InvalidArgument, ""}.check(t, DomainToken(s))
	}
	testkit.Check(t, DomainToken("shop-1"))
}

func TestCostIsBounded(t *testing.T) {
	for cost, good := range map[int32]bool{-1: false, 0: true, 1: true, 1000: true, 1001: false} {
		r := request(3)
		r.Tasks[2].Cost = cost
		if err := Submit(r, now, Form{}); !good {
			wants{fault.InvalidArgument, "/tasks/2/cost"}.check(t, err)
		} else if err != nil {
			t.Errorf("%d: %v", cost, err)
		}
	}
}
