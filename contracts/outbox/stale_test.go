package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// A relay pauses between its turn and its request. Another relay repeats the request and ends before it learns that it was stored. Then the first relay
// wakes, and the engine refuses its late first try. The task is stored once all the same.
func aPausedRelayStoresNothingTwice(t *testing.T, ob *Outbox, db *sql.DB) {
	late := fault.At(fault.FailedPrecondition, "/request_id", "its time is 1m5s behind")
	late.Detail = map[string]string{fault.DetailNowMs: fmt.Sprint(time.Now().UnixMilli())}
	full := fault.New(fault.Unavailable, "nothing was stored: no partition of the log took it in time")
	for name, c := range map[string]struct {
		// other is the life of the other relay.
		other func(t *testing.T, e *engine)
		// answer is the answer to the late first try.
		answer error
	}{
		"the other is killed, the first try is too late":      {killedAfterItsRequest(ob, db), late},
		"the other is killed, the first try is not stored":    {killedAfterItsRequest(ob, db), full},
		"the other stops, the answer to its repeat is lost":   {stopsWithoutAnAnswer(ob, db), late},
		"the other stops, and the first try finds no storage": {stopsWithoutAnAnswer(ob, db), full},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			paused := newRelay(ob, db, e, nil)
			want := submit(t, ob, db, mail(1))
			send, first := paused.submit, true
			paused.submit = func(ctx context.Context, req *yardv1.SubmitRequest) (*yardv1.SubmitResponse, error) {
				if !first {
					return send(ctx, req)
				}
				first = false
				expire(t, db)
				c.other(t, e)
				expire(t, db)
				return nil, c.answer
			}
			_ = paused.Once(t.Context()) // its first try is refused
			check(t, paused.Once(t.Context()))
			if got := e.names(); !slices.Equal(got, want) {
				t.Errorf("the engine has %q, want %q", got, want)
			}
			if left := waiting(t, ob, db); len(left) != 0 {
				t.Errorf("rows are left: %v", left)
			}
		})
	}
}

// killedAfterItsRequest is the life of a relay that is killed when the engine has its request.
func killedAfterItsRequest(ob *Outbox, db *sql.DB) func(*testing.T, *engine) {
	return func(t *testing.T, e *engine) {
		_ = newRelay(ob, db, e, func(int) bool { return len(e.requests) > 0 }).Once(t.Context())
	}
}

// stopsWithoutAnAnswer is the life of a relay that stores its request, loses the answer, and leaves its lane.
func stopsWithoutAnAnswer(ob *Outbox, db *sql.DB) func(*testing.T, *engine) {
	return func(t *testing.T, e *engine) {
		e.fault = func(_ *yardv1.SubmitRequest, do func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
			do()
			return nil, fault.New(fault.Unknown, "the answer is lost")
		}
		_ = newRelay(ob, db, e, nil).Once(t.Context())
		e.fault = nil
	}
}
