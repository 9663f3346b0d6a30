package outbox

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// upTo is an engine behind a NATS server that takes requests of so many bytes.
func upTo(bytesMax int) func(*yardv1.SubmitRequest, func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
	return func(req *yardv1.SubmitRequest, do func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
		if size := req.SizeVT(); size > bytesMax {
			return nil, fault.New(fault.InvalidArgument, "a request of %d bytes is more than the NATS server takes (%d)", size, bytesMax)
		}
		return do(), nil
	}
}

// kib is a task of so many KiB.
func kib(n int) yard.Task {
	return yard.Task{Type: "x", Tasklist: "mail", OrderKey: "k", Payload: make([]byte, n<<10)}
}

// Rows that are too many for one request of the connection are in several. So a relay may be killed at any step, and its repeat is not too large.
func aRequestIsAsLargeAsTheServerTakes(t *testing.T, ob *Outbox, db *sql.DB) {
	const bytesMax = 128 << 10
	for dieAt, died := 1, true; died; dieAt++ {
		e := newEngine(t)
		e.fault = upTo(bytesMax)
		relay := func(dies func(step int) bool) *Relay {
			r := newRelay(ob, db, e, dies)
			r.bytesMax = func() int { return bytesMax - 1<<10 }
			return r
		}
		var want []string
		for range 10 {
			want = append(want, submit(t, ob, db, kib(30))...)
		}
		died = relay(func(step int) bool { return step == dieAt }).Once(t.Context()) != nil
		expire(t, db)
		check(t, relay(nil).Once(t.Context()))
		if got := e.names(); !slices.Equal(got, want) {
			t.Fatalf("killed at step %d: the engine has %q, want %q", dieAt, got, want)
		}
	}
}

// A relay is killed before it sends its request, and the NATS server takes only smaller ones from now on. As soon as the engine does not remember the request,
// its rows are set aside as unknown, and rows behind them go on.
func aRepeatThatIsTooLargeIsSetAside(t *testing.T, ob *Outbox, db *sql.DB) {
	e := newEngine(t)
	e.fault = upTo(128 << 10)
	large := submit(t, ob, db, kib(200))
	_ = newRelay(ob, db, e, func(step int) bool { return step == 4 }).Once(t.Context())
	expire(t, db)
	want := submit(t, ob, db, kib(1))
	if err := newRelay(ob, db, e, nil).Once(t.Context()); err == nil || waiting(t, ob, db)[Waiting] != 2 {
		t.Fatalf("the engine may remember the request: %v, rows: %v", err, waiting(t, ob, db))
	}
	old := ids.NewRequestID(time.Now().Add(-rememberedFor - time.Minute)).String()
	_, err := db.ExecContext(t.Context(), fmt.Sprintf("UPDATE yard_outbox_lane SET request_id = '%s' WHERE request_id <> '' AND domain = '%s'", old, ob.domain))
	check(t, err)
	check(t, newRelay(ob, db, e, nil).Once(t.Context()))
	aside, err := ob.SetAside(t.Context(), db, 10)
	check(t, err)
	if len(aside) != 1 || aside[0].State != Unknown || !slices.Equal(aside[0].Tasks, large) || !strings.Contains(aside[0].Reason, "NATS server takes") {
		t.Errorf("set aside: %+v", aside)
	}
	if got := e.names(); !slices.Equal(got, want) {
		t.Errorf("the engine has %q, want %q", got, want)
	}
}
