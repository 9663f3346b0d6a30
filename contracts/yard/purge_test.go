package yard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// A purge goes on until there is no cursor, adds its steps up, keeps to its rate, and waits a moment behind a step that found nothing.
func TestAPurgeGoesStepByStep(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.PurgeRequest](t, s, topology.API("shop", "tasklists.purge"),
			&yardv1.PurgeResponse{Purged: &yardv1.Purged{Found: 50, Cancelled: 47, CancelRequested: 1, Ended: 1, Undecided: 1, NextCursor: "b"}},
			&yardv1.PurgeResponse{Purged: &yardv1.Purged{UnreadBatches: 9, NextCursor: "c"}},
			&yardv1.PurgeResponse{Purged: &yardv1.Purged{Found: 1, Cancelled: 1, UnreadBatches: 2}},
		)
		var told []int64
		got, err := s.client.Purge(soon(t), yard.OfTasklist("mail"), yard.PurgeOptions{
			Type: "email.send", States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY}, OlderThan: time.Minute, Running: true, Rate: 200,
			Reason: "twice", By: "ann", Cursor: "a", Progress: func(p yard.Purged) { told = append(told, p.Found) },
		})
		if want := (yard.Purged{Found: 51, Cancelled: 48, CancelRequested: 1, Ended: 1, Undecided: 1, UnreadBatches: 2}); err != nil || got != want {
			t.Errorf("%+v %v", got, err)
		}
		if len(told) != 3 || told[0] != 50 || told[2] != 51 {
			t.Errorf("progress %v", told)
		}
		for i, cursor := range []string{"a", "b", "c"} {
			want := &yardv1.PurgeRequest{
				Name: "mail", Type: "email.send", States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY}, OlderThanMs: 60_000, Running: true,
				Limit: 50, Cursor: cursor, Reason: "twice", By: "ann",
			}
			if !proto.Equal(steps.requests()[i], want) {
				t.Errorf("step %d: %v", i, steps.requests()[i])
			}
		}
		if first, second := steps.at[1].Sub(steps.at[0]), steps.at[2].Sub(steps.at[1]); first < 250*time.Millisecond || second < 300*time.Millisecond {
			t.Errorf("steps after %v and %v", first, second)
		}
	})
}

// A preview asks for all it can get at once. A step that fails ends the purge, which tells where to go on, and so does the caller's end.
func TestAPurgeThatIsGivenUpTellsWhereItWas(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.PurgeRequest](t, s, topology.API("shop", "types.purge"),
			&yardv1.PurgeResponse{Purged: &yardv1.Purged{Found: 3, NextCursor: "b"}},
			fault.New(fault.PermissionDenied, "no"),
		)
		got, err := s.client.Purge(soon(t), yard.OfType("pay"), yard.PurgeOptions{Tasklist: "mail", Preview: true})
		if fault.CodeOf(err) != fault.PermissionDenied || got != (yard.Purged{Found: 3, Cursor: "b"}) {
			t.Errorf("%+v %v", got, err)
		}
		if !proto.Equal(steps.requests()[0], &yardv1.PurgeRequest{Name: "pay", Tasklist: "mail", Preview: true, Limit: 1000}) {
			t.Errorf("%v", steps.requests()[0])
		}
		answering[yardv1.PurgeRequest](t, s, topology.API("shop", "tasklists.purge"),
			&yardv1.PurgeResponse{Purged: &yardv1.Purged{Found: 1000, Cancelled: 1000, NextCursor: "b"}})
		ctx, cancel := context.WithCancelCause(soon(t))
		enough := errors.New("enough")
		got, err = s.client.Purge(ctx, yard.OfTasklist("mail"), yard.PurgeOptions{Rate: 1, Progress: func(yard.Purged) { cancel(enough) }})
		if !errors.Is(err, enough) || got.Cancelled != 1000 || got.Cursor != "b" {
			t.Errorf("%+v %v", got, err)
		}
	})
}
