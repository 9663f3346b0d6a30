package partition_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// silentTimer answers nothing.
type silentTimer struct{ partition.Timer }

func silence(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
	}
	return fault.New(fault.Unavailable, "no answer")
}

func (silentTimer) FireEarly(ctx context.Context, _ []replica.Search) (partition.Early, error) {
	return partition.Early{}, silence(ctx)
}

func (silentTimer) Locate(ctx context.Context, _ ids.TaskID) (*logv1.Record, uint64, error) {
	return nil, 0, silence(ctx)
}

// ended runs a task to its end with one owner, and returns what matching learned of it.
func (s *shell) ended(id ids.TaskID) ids.Trigger {
	var last ids.Trigger
	s.worker = func(tr ids.Trigger) {
		last = tr
		s.event(outcome(tr, logv1.EventKind_EVENT_KIND_STARTED))
		s.event(outcome(tr, logv1.EventKind_EVENT_KIND_COMPLETED))
	}
	_, stop := ready(s.deps("a"))
	s.submit(3, task(id, "shop"))
	time.Sleep(time.Minute)
	testkit.NoError(s.t, stop())
	s.mu.Lock()
	s.verdicts = nil
	s.mu.Unlock()
	return last
}

// R18, R20: searches that need the timer wait while it is silent. Those that other stores
// answer do not wait behind them, neither outcomes nor gets, the caller.
func TestASilentTimerHoldsUpNothingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		id := newID(1)
		last := s.ended(id)
		d := s.deps("b")
		d.Timer = silentTimer{s.world}
		o := s.serves(d)
		for n := range uint64(3000) {
			away := newID(10 + n)
			s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: away[:], Domain: "flood"})
			s.event(outcome(ids.Trigger{ID: away, Position: ids.NewPosition(1, 0)}, logv1.EventKind_EVENT_KIND_FAILED))
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: away[:], Domain: "flood"}, func(*rpcv1.GetTaskResponse, error) {})
		}
		time.Sleep(2 * time.Second)
		again := outcome(last, logv1.EventKind_EVENT_KIND_COMPLETED)
		again.Domain = "shop"
		s.event(again)
		var got *rpcv1.GetTaskResponse
		o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"}, func(r *rpcv1.GetTaskResponse, err error) {
			testkit.Check(t, err)
			got = r
		})
		time.Sleep(time.Second)
		synctest.Wait()
		s.mu.Lock()
		ok := 0
		for _, v := range s.verdicts {
			if v.Code == "" {
				ok++
			}
		}
		s.mu.Unlock()
		if ok != 1 || got == nil || got.Task == nil {
			t.Errorf("%d verdicts on the outcome, the get has %v", ok, got)
		}
	})
}

// blindReader has no archive, and fails to search the log for a time.
type blindReader struct {
	partition.Reader
	until time.Time
	err   error
}

func (blindReader) Archived(_ context.Context, wanted []replica.Search) ([]*logv1.Record, error) {
	return make([]*logv1.Record, len(wanted)), nil
}

func (r blindReader) Unread(ctx context.Context, wanted replica.Search, hint uint64, read replica.Levels) (*logv1.Record, ids.Position, error) {
	if time.Now().Before(r.until) {
		return nil, 0, r.err
	}
	return r.Reader.Unread(ctx, wanted, hint, read)
}

// R20: an outcome is NOT_FOUND only if its task was looked for everywhere.
func TestAnOutcomeIsNotFoundOnlyIfTheLogWasSearched(t *testing.T) {
	for what, c := range map[string]struct {
		err  error
		want fault.Code
	}{
		"fails for a while": {errors.New("no answer"), fault.NotFound},
		"is too long":       {partition.ErrSearchTooLong, fault.Unknown},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *shell) {
				last := s.ended(newID(1))
				d := s.deps("b")
				d.Reader = blindReader{d.Reader, time.Now().Add(10 * time.Second), c.err}
				s.serves(d)
				s.event(outcome(last, logv1.EventKind_EVENT_KIND_COMPLETED))
				time.Sleep(5 * time.Second)
				s.mu.Lock()
				if early := len(s.verdicts) > 0; early != (c.want == fault.Unknown) {
					t.Errorf("after 5 s: %v", s.verdicts)
				}
				s.mu.Unlock()
				time.Sleep(time.Minute)
				s.mu.Lock()
				if len(s.verdicts) != 1 || fault.Code(s.verdicts[0].Code) != c.want {
					t.Errorf("verdicts are %v, want %s", s.verdicts, c.want)
				}
				s.mu.Unlock()
			})
		})
	}
}
