package partition_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// noCheckpoints cannot be read.
type noCheckpoints struct{ partition.Checkpoints }

func (noCheckpoints) Load(context.Context) (*logv1.Checkpoint, uint64, error) {
	return nil, 0, errors.New("no quorum")
}

// TestCallersOfAnOwnerThatEndsAreAnswered: those whose calls are queued, and those that come later,
// hear at once that they have to ask another owner.
func TestCallersOfAnOwnerThatEndsAreAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		d.Checkpoints = noCheckpoints{s.world}
		o := partition.New(d)
		id := newID(1)
		const callers = 20
		answers := make(chan error, 4*callers)
		ask := func() {
			for range callers {
				o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:]}, func(_ *rpcv1.GetTaskResponse, err error) { answers <- err })
				go func() {
					_, err := queries.Of(o).Describe(t.Context(), &rpcv1.DescribePartitionRequest{})
					answers <- err
				}()
			}
		}
		ask()
		synctest.Wait()
		testkit.Equal(t, "callers were answered by no one", len(answers), 0)
		if o.Run(t.Context()) == nil {
			t.Error("the owner has taken over")
		}
		ask()
		synctest.Wait()
		if n := len(answers); n != 4*callers {
			t.Fatalf("%d of %d callers were answered", n, 4*callers)
		}
		for range 4 * callers {
			if err := <-answers; fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("answered %v", err)
			}
		}
	})
}

// strictLog does not take what its owner proposes.
type strictLog struct {
	partition.Log
	refused chan struct{}
}

func (l strictLog) Append(ctx context.Context, turn []byte, after uint64) (uint64, error) {
	var t logv1.Turn
	if err := t.UnmarshalVT(turn); err != nil {
		return 0, err
	}
	if len(t.Batches) > 0 && t.Batches[0].ReplyTo == "" && len(t.Batches[0].Events) > 0 { // its owner's own
		l.refused <- struct{}{}
		return 0, partition.ErrRefused
	}
	return l.Log.Append(ctx, turn, after)
}

// TestEventsThatTheLogRefusesAreProposedAgain, and are no matter for the quarantine.
func TestEventsThatTheLogRefusesAreProposedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		strict := strictLog{s.world, make(chan struct{}, 100)}
		d.Log = strict
		s.works(logv1.EventKind_EVENT_KIND_HEARTBEAT) // and then falls silent
		_, stop := ready(d)
		r := task(newID(1), "shop")
		r.Policy.StartToCloseMs = 1000
		s.submit(3, r)
		for range 3 {
			<-strict.refused
		}
		testkit.Check(t, stop())
		testkit.Equal(t, "records are in the quarantine", len(s.quarantined), 0)
	})
}
