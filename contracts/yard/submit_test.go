package yard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

func TestPayloadRoundTrip(t *testing.T) {
	type order struct{ ID int }
	for _, v := range []any{order{7}, "text", 3.5, []string{"a"}, []byte{0, 1, 2}, json.RawMessage(`{"a":1}`)} {
		p, err := NewPayload(v)
		checktest.NoError(t, err)
		p = payloadOf(p.wire())
		got := reflect.New(reflect.TypeOf(v))
		if err := p.Decode(got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), v) {
			t.Errorf("%v: got %v, %v", v, got.Elem(), err)
		}
	}
	if p, err := NewPayload([]byte("x")); err != nil || !p.Binary {
		t.Errorf("a []byte is not binary: %v %v", p, err)
	}
	if _, err := NewPayload(func() {}); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("got %v", err)
	}
	var n int
	if err := (Payload{Data: []byte("1"), Binary: true}).Decode(&n); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("got %v", err)
	}
}

func TestTaskFillsEveryField(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_123)
	task := Task{
		Type: "a", Tasklist: "b", Payload: 1, Priority: 2, Delay: 1500 * time.Microsecond, RunAt: at,
		Retry:       &RetryPolicy{MaxAttempts: 3, InitialInterval: time.Second, Backoff: 1.5, MaxInterval: time.Hour},
		StartWithin: time.Hour, FinishWithin: 2 * time.Hour,
		StartToClose: time.Minute, HeartbeatTimeout: time.Second, Traceparent: "tp",
		Headers: map[string]string{"partner": "acme"}, Group: "bolt", Cost: 7,
		Unique: &Unique{Key: "k", Reject: true, For: time.Second},
	}
	got := &yardv1.NewTask{}
	checktest.NoError(t, task.fill(got))
	want := &yardv1.NewTask{
		Type: "a", Tasklist: "b", Payload: &yardv1.Payload{Data: []byte("1")}, Priority: 2, DelayMs: 2, RunAtMs: at.UnixMilli(),
		Retry:         &yardv1.RetryPolicy{MaxAttempts: 3, InitialIntervalMs: 1000, Backoff: 1.5, MaxIntervalMs: 3_600_000},
		StartWithinMs: 3_600_000, FinishWithinMs: 7_200_000,
		StartToCloseMs: 60_000, HeartbeatTimeoutMs: 1000, Traceparent: "tp",
		Headers: map[string]string{"partner": "acme"}, Group: "bolt", Cost: 7,
		UniqueKey: "k", UniqueForMs: 1000, OnConflict: yardv1.OnConflict_ON_CONFLICT_REJECT,
	}
	if a, b := encoded(t, got), encoded(t, want); !bytes.Equal(a, b) {
		t.Errorf("got %v, want %v", got, want)
	}
	if int32Of(1<<32+1) != math.MaxInt32 {
		t.Error("a number out of range wraps into a valid one")
	}
}

func encoded(t *testing.T, m *yardv1.NewTask) []byte {
	t.Helper()
	b, err := m.MarshalVT()
	checktest.NoError(t, err)
	return b
}

func TestGatherKeepsBothLimits(t *testing.T) {
	small := make([]Task, 2500)
	for i := range small {
		small[i] = Task{Type: "x", Payload: i}
	}
	req, err := gather(small, requestBytesMax)
	if err != nil || len(req.Tasks) != requestTasksMax {
		t.Errorf("%d tasks, %v", len(req.Tasks), err)
	}
	large := make([]Task, 50)
	for i := range large {
		large[i] = Task{Type: "x", Payload: make([]byte, 200<<10)}
	}
	req, err = gather(large, requestBytesMax)
	if err != nil || len(req.Tasks) != 4 || req.SizeVT() > requestBytesMax {
		t.Errorf("%d tasks in %d bytes, %v", len(req.Tasks), req.SizeVT(), err)
	}
	if req, err = gather(large, 1000); err != nil || len(req.Tasks) != 1 {
		t.Errorf("a task over the limit goes alone, for the engine to decide: %d, %v", len(req.Tasks), err)
	}
	_, err = gather([]Task{{}, {Payload: func() {}}}, requestBytesMax)
	if e := fault.From(err); e.Code != fault.InvalidArgument || e.Path != "/tasks/1/payload" {
		t.Errorf("got %v", err)
	}
}

func TestPathsCountFromTheCallersFirstTask(t *testing.T) {
	for path, want := range map[string]string{
		"/tasks/3/delay_ms": "/tasks/1003/delay_ms", "/tasks/0": "/tasks/1000", "/tasklist": "/tasklist", "/tasks/x/y": "/tasks/x/y",
	} {
		if got := fault.From(offsetPath(fault.At(fault.InvalidArgument, path, "bad"), 1000)); got.Path != want {
			t.Errorf("%s became %s", path, got.Path)
		}
	}
}

func TestBackoffGrowsWithinBoundsAndObeysTheServer(t *testing.T) {
	for try := range 100 {
		d := backoff(try, 0)
		if d < backoffFirst/2 || d > backoffMax || try > 6 && d < backoffMax/2 {
			t.Fatalf("try %d waits %v", try, d)
		}
	}
	if d := backoff(0, 10*time.Second); d < 10*time.Second || d > 15*time.Second {
		t.Errorf("asked to wait 10 s, it waits %v", d)
	}
}

// A caller whose time ends as its answer comes gets the answer: the state may be that of the tasks that are sent again without its own.
func TestAnAnswerCountsBeforeTheFate(t *testing.T) {
	s := &single{answer: make(chan submitted, 1), request: &requestState{}}
	s.answer <- submitted{id: "stored"}
	if got := new(together).leave(s); got.id != "stored" || got.err != nil {
		t.Errorf("got %+v", got)
	}
	if got := new(together).leave(s); fault.CodeOf(got.err) != fault.Unavailable {
		t.Errorf("without an answer: %+v", got)
	}
}

func TestErrorType(t *testing.T) {
	for err, want := range map[error]string{
		errors.New("x"):                               "error",
		fmt.Errorf("a: %w", fault.New("X", "y")):      "fault.Error",
		fmt.Errorf("a: %w", &json.SyntaxError{}):      "json.SyntaxError",
		fmt.Errorf("a: %w", ownType{}):                "card_declined",
		NonRetryable(fmt.Errorf("a: %w", ownType{})):  "card_declined",
		NonRetryable(&json.UnsupportedValueError{}):   "json.UnsupportedValueError",
		errors.Join(errors.New("a"), errors.New("b")): "error",
	} {
		if got := ErrorType(err); got != want {
			t.Errorf("%T %v: got %q, want %q", err, err, got, want)
		}
	}
	if NonRetryable(nil) != nil || RetryAfter(nil, 1) != nil {
		t.Error("no error became an error")
	}
}

type ownType struct{}

func (ownType) Error() string     { return "declined" }
func (ownType) ErrorType() string { return "card_declined" }

func TestLongMessagesAreCutBetweenCharacters(t *testing.T) {
	got := clip(strings.Repeat("é", 3000), messageBytesMax-1)
	if len(got) != messageBytesMax-2 || !strings.HasSuffix(got, "é") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-2:])
	}
	checktest.Equal(t, "result", clip("a\xffb", 100), "a\uFFFDb")
}

func TestTaskErrorMatchesItsState(t *testing.T) {
	_, err := resultOf(infoOf(&yardv1.Task{TaskId: "t", State: yardv1.TaskState_TASK_STATE_DEAD, ErrorMessage: "no route"}))
	if !errors.Is(err, ErrDead) || errors.Is(err, ErrCancelled) || err.Error() != "task t is dead: no route" {
		t.Errorf("got %v", err)
	}
	_, err = resultOf(infoOf(&yardv1.Task{State: yardv1.TaskState_TASK_STATE_CANCELLED}))
	if !errors.Is(err, ErrCancelled) || errors.Is(err, ErrDead) || errors.Is(err, ErrExpired) {
		t.Errorf("got %v", err)
	}
	_, err = resultOf(infoOf(&yardv1.Task{TaskId: "t", State: yardv1.TaskState_TASK_STATE_EXPIRED}))
	if !errors.Is(err, ErrExpired) || errors.Is(err, ErrDead) || errors.Is(err, ErrCancelled) || err.Error() != "task t is expired" {
		t.Errorf("got %v", err)
	}
}

// R52: a worker whose clock is ahead has as long for an attempt as any other.
func TestR52_AnAttemptsTimeDoesNotDependOnTheWorkersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if a := newAttempt("shop", &yardv1.PolledTask{TimeoutMs: time.Minute.Milliseconds()}); time.Until(a.Deadline) != time.Minute {
			t.Errorf("the attempt must be over in %v", time.Until(a.Deadline))
		}
	})
}
