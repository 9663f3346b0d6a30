package yard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

var someLetters = yard.DeadLetterFilter{
	Tasklist: "mail", Type: "email.send", Group: "acme", ErrorType: "network", Since: time.UnixMilli(1000), Until: time.UnixMilli(9000),
}

var someLettersWire = &yardv1.DeadLetterFilter{Tasklist: "mail", Type: "email.send", Group: "acme", ErrorType: "network", SinceMs: 1000, UntilMs: 9000}

func TestDeadLettersAreListedPageByPage(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.ListDeadLettersRequest](t, s, topology.API("shop", "deadletters.list"),
			&yardv1.ListDeadLettersResponse{Tasks: []*yardv1.Task{{TaskId: "a", State: yardv1.TaskState_TASK_STATE_DEAD, Redrives: 2}}, NextCursor: "1.9"},
			&yardv1.ListDeadLettersResponse{NextCursor: "2.9"}, // none of these match
			&yardv1.ListDeadLettersResponse{Tasks: []*yardv1.Task{{TaskId: "b"}}},
		)
		var got []string
		for task, err := range s.client.ListDeadLetters(soon(t), someLetters) {
			checktest.NoError(t, err)
			if got = append(got, task.ID); task.ID == "a" && (task.Redrives != 2 || task.State != yard.StateDead) {
				t.Errorf("task %+v", task)
			}
		}
		if len(got) != 2 || got[0] != "a" || got[1] != "b" {
			t.Errorf("listed %v", got)
		}
		for i, cursor := range []string{"", "1.9", "2.9"} {
			if want := (&yardv1.ListDeadLettersRequest{Filter: someLettersWire, Cursor: cursor}); !proto.Equal(steps.requests()[i], want) {
				t.Errorf("page %d: %v", i, steps.requests()[i])
			}
		}
	})
}

func TestCountsOfDeadLettersAddUp(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		count := func(typ string, n, first, last int64) *yardv1.DeadLetterCount {
			return &yardv1.DeadLetterCount{Type: typ, ErrorType: "network", PeriodAtMs: 1000, Letters: n, FirstAtMs: first, LastAtMs: last}
		}
		steps := answering[yardv1.CountDeadLettersRequest](t, s, topology.API("shop", "deadletters.count"),
			&yardv1.CountDeadLettersResponse{Counts: []*yardv1.DeadLetterCount{count("x", 2, 1500, 1700), count("y", 1, 1600, 1600)}, NextCursor: "7.9"},
			&yardv1.CountDeadLettersResponse{Counts: []*yardv1.DeadLetterCount{count("x", 3, 1400, 1900), count("y", 1, 1650, 1650)}},
			fault.New(fault.PermissionDenied, "no"),
		)
		got, err := s.client.CountDeadLetters(soon(t), yard.DeadLetterFilter{}, time.Second)
		if err != nil || len(got) != 2 {
			t.Fatalf("%v %v", got, err)
		}
		want := yard.DeadLetterCount{Type: "x", ErrorType: "network", Period: time.UnixMilli(1000), Letters: 5, First: time.UnixMilli(1400), Last: time.UnixMilli(1900)}
		if got[0] != want || got[1].Letters != 2 {
			t.Errorf("%+v", got)
		}
		if r := steps.requests()[1]; r.PeriodMs != 1000 || r.Cursor != "7.9" {
			t.Errorf("step %v", r)
		}
		checktest.Code(t, "error", checktest.Err(s.client.CountDeadLetters(soon(t), yard.DeadLetterFilter{}, 0)), fault.PermissionDenied)
	})
}

func TestADeadLetterIsGotWhole(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.GetDeadLetterRequest](t, s, topology.API("shop", "deadletters.get"),
			&yardv1.GetDeadLetterResponse{Task: &yardv1.Task{TaskId: "a", ErrorMessage: "no route"}}, fault.New(fault.NotFound, "none"))
		task, err := s.client.GetDeadLetter(soon(t), "a")
		if err != nil || task.ErrorMessage != "no route" || steps.requests()[0].TaskId != "a" {
			t.Errorf("%+v %v", task, err)
		}
		checktest.Code(t, "error", checktest.Err(s.client.GetDeadLetter(soon(t), "b")), fault.NotFound)
	})
}

// A redrive by filter goes on until there is no cursor, adds its steps up, and keeps to its rate. Each step is a request of its own.
func TestARedriveGoesStepByStep(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.RedriveRequest](t, s, topology.API("shop", "deadletters.redrive"),
			&yardv1.RedriveResponse{Found: 50, Redriven: 48, Refused: 1, Undecided: 1, NextCursor: "b"},
			&yardv1.RedriveResponse{Found: 1, Redriven: 1},
		)
		progress := 0
		got, err := s.client.Redrive(soon(t), yard.RedriveOptions{
			Filter: someLetters, Rate: 200, Retry: &yard.RetryPolicy{MaxAttempts: 5}, Reason: "up again", By: "ann", Cursor: "a", Progress: func(yard.Redriven) { progress++ },
		})
		if want := (yard.Redriven{Found: 51, Redriven: 49, Refused: 1, Undecided: 1}); err != nil || got != want || progress != 2 {
			t.Errorf("%+v %v, after %d steps", got, err, progress)
		}
		all := steps.requests()
		if all[0].RequestId == "" || all[0].RequestId == all[1].RequestId {
			t.Errorf("request ids %q and %q", all[0].RequestId, all[1].RequestId)
		}
		for i, cursor := range []string{"a", "b"} {
			want := &yardv1.RedriveRequest{
				Filter: someLettersWire, Limit: 50, Cursor: cursor, Retry: &yardv1.RetryPolicy{MaxAttempts: 5}, Reason: "up again", By: "ann", RequestId: all[i].RequestId,
			}
			if !proto.Equal(all[i], want) {
				t.Errorf("step %d: %v", i, all[i])
			}
		}
		if rest := steps.at[1].Sub(steps.at[0]); rest < 250*time.Millisecond {
			t.Errorf("the second step came after %v", rest)
		}
	})
}

// What the log has not said yet is asked again, by the same request, which changes nothing twice.
func TestARedriveOfTasksIsRepeatedUntilItIsDecided(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.RedriveRequest](t, s, topology.API("shop", "deadletters.redrive"),
			&yardv1.RedriveResponse{Found: 2, Redriven: 1, Undecided: 1}, &yardv1.RedriveResponse{Found: 1, Redriven: 2})
		got, err := s.client.Redrive(soon(t), yard.RedriveOptions{TaskIDs: []string{"a", "b"}})
		all := steps.requests()
		if err != nil || got.Redriven != 2 || len(all) != 2 || !proto.Equal(all[0], all[1]) || len(all[0].TaskIds) != 2 || all[0].Filter != nil {
			t.Errorf("%+v %v, %v", got, err, all)
		}
	})
}

// A caller whose time ends before the next step is due learns that it is not over.
func TestAStepThatIsNotReachedIsAnError(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		answering[yardv1.RedriveRequest](t, s, topology.API("shop", "deadletters.redrive"), &yardv1.RedriveResponse{Found: 50, Redriven: 50, NextCursor: "b"})
		answering[yardv1.PurgeDeadLettersRequest](t, s, topology.API("shop", "deadletters.purge"), &yardv1.PurgeDeadLettersResponse{Found: 50, Purged: 50, NextCursor: "b"})
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if got, err := s.client.Redrive(ctx, yard.RedriveOptions{Rate: 1}); !errors.Is(err, context.DeadlineExceeded) || got.Redriven != 50 || got.Cursor != "b" {
			t.Errorf("%+v %v", got, err)
		}
		ctx, cancel = context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if got, err := s.client.PurgeDeadLetters(ctx, yard.PurgeDeadLettersOptions{Rate: 1}); !errors.Is(err, context.DeadlineExceeded) || got.Purged != 50 || got.Cursor != "b" {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// More tasks than fit into a request go in several.
func TestManyTasksAreRedrivenInSeveralRequests(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.RedriveRequest](t, s, topology.API("shop", "deadletters.redrive"),
			&yardv1.RedriveResponse{Found: 100, Redriven: 100}, &yardv1.RedriveResponse{Found: 50, Redriven: 50})
		got, err := s.client.Redrive(soon(t), yard.RedriveOptions{TaskIDs: make([]string, 150), Rate: 10_000})
		if all := steps.requests(); err != nil || got.Redriven != 150 || len(all) != 2 || len(all[0].TaskIds) != 100 || len(all[1].TaskIds) != 50 {
			t.Errorf("%+v %v", got, err)
		}
	})
}

func TestAPurgeOfDeadLettersGoesStepByStep(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.PurgeDeadLettersRequest](t, s, topology.API("shop", "deadletters.purge"),
			&yardv1.PurgeDeadLettersResponse{Found: 9, NextCursor: "b"}, &yardv1.PurgeDeadLettersResponse{Found: 1},
			&yardv1.PurgeDeadLettersResponse{Found: 100, Purged: 100, NextCursor: "c"})
		got, err := s.client.PurgeDeadLetters(soon(t), yard.PurgeDeadLettersOptions{Filter: someLetters, Preview: true, By: "ann"})
		if err != nil || got != (yard.PurgedDeadLetters{Found: 10}) {
			t.Errorf("%+v %v", got, err)
		}
		if want := (&yardv1.PurgeDeadLettersRequest{Filter: someLettersWire, Preview: true, Limit: 1000, By: "ann"}); !proto.Equal(steps.requests()[0], want) {
			t.Errorf("%v", steps.requests()[0])
		}
		ctx, cancel := context.WithCancelCause(soon(t))
		enough := errors.New("enough")
		got, err = s.client.PurgeDeadLetters(ctx, yard.PurgeDeadLettersOptions{Rate: 1, Progress: func(yard.PurgedDeadLetters) { cancel(enough) }})
		if !errors.Is(err, enough) || got != (yard.PurgedDeadLetters{Found: 100, Purged: 100, Cursor: "c"}) {
			t.Errorf("%+v %v", got, err)
		}
	})
}
