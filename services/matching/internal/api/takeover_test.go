package api_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// hint publishes triggers of so many tasks, one message each.
func (l *line) hint(n int) {
	l.t.Helper()
	for i := range n {
		data, err := (&logv1.Hints{Triggers: []*logv1.TriggerBatch{{
			Domain: domain, Tasklist: tasklist, Type: "a", Priority: 3, ReadyAtUs: 1,
			Triggers: ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(i)), Version: 1}),
		}}}).MarshalVT()
		if err == nil {
			_, err = l.js.Publish(l.t.Context(), topology.Matching(0), data)
		}
		testkit.NoError(l.t, err)
	}
}

func hints(n int) func(in *match.Inputs) error {
	return func(in *match.Inputs) error {
		if len(in.Hints) != n {
			return fmt.Errorf("%d hints came, want %d", len(in.Hints), n)
		}
		return nil
	}
}

// TestR36_HintsOfADeadOwnerComeAtOnce: what an owner had not acknowledged does not wait for its time
// to run out, and the owner itself, alive by mistake, learns that it is overtaken.
func TestR36_HintsOfADeadOwnerComeAtOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	first := l.serve(1)
	l.hint(3)
	first.saw(t, hints(3))
	first.do(match.Effects{Acks: []uint64{2}})
	stream, err := l.js.Stream(t.Context(), topology.MatchingStream(0))
	testkit.NoError(t, err)
	testkit.Eventually(t, patience, func() error { // until the server has the acknowledgement
		old, err := stream.Consumer(t.Context(), "owner-1")
		if err == nil && old.CachedInfo().NumAckPending != 2 {
			err = fmt.Errorf("%d hints are not acknowledged", old.CachedInfo().NumAckPending)
		}
		return err
	})
	second := l.serve(2)
	second.saw(t, hints(2))
	select {
	case err := <-first.done:
		if !errors.Is(err, shard.ErrOvertaken) {
			t.Errorf("the first owner ended with %v", err)
		}
		first.done <- err
	case <-time.After(patience):
		t.Error("the first owner goes on")
	}
	stream, err = l.js.Stream(t.Context(), topology.MatchingStream(0))
	testkit.NoError(t, err)
	consumer, err := stream.Consumer(t.Context(), "owner-2")
	testkit.NoError(t, err)
	// They came as new ones, not after the time in which they could be acknowledged.
	if i := consumer.CachedInfo(); i.Delivered.Consumer != 2 || i.NumRedelivered != 0 || stream.CachedInfo().State.Consumers != 1 {
		t.Errorf("%d consumers, of which the new one has delivered %d, %d again", stream.CachedInfo().State.Consumers, i.Delivered.Consumer, i.NumRedelivered)
	}
}

// An owner of an older epoch that begins late serves nothing.
func TestOlderEpochDoesNotRead(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.hint(1)
	newer := l.serve(2)
	newer.saw(t, hints(1))
	older := l.serve(1)
	if err := <-older.done; !errors.Is(err, shard.ErrOvertaken) {
		t.Errorf("ended with %v", err)
	}
	older.done <- nil
	l.hint(1)
	newer.saw(t, hints(2))
}

// Hints are lost with the server's memory, and not by a takeover.
func TestHintsAreLostOnlyWithTheirStream(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for what is lost to be noticed")
	l := newLine(t)
	lost := func(want bool) func(in *match.Inputs) error {
		return func(in *match.Inputs) error {
			if in.HintsLost != want {
				return fmt.Errorf("hints lost: %v", in.HintsLost)
			}
			return nil
		}
	}
	first := l.serve(1)
	first.saw(t, lost(true)) // of a stream that no one has read
	l.hint(1)
	first.saw(t, hints(1))
	first.stop()
	second := l.serve(2)
	second.saw(t, hints(1))
	second.saw(t, lost(false))
	second.saw(t, func(in *match.Inputs) error {
		if in.ReleasesLost {
			return errors.New("releases are lost, though nothing broke")
		}
		return nil
	})
	l.server.Restart(t)
	second.saw(t, lost(true))
	l.hint(1)
	second.saw(t, func(in *match.Inputs) error {
		if len(in.Hints) < 2 {
			return errors.New("the hint has not come")
		}
		return nil
	})
}

// What cannot be read wedges nothing.
func TestPoisonHintsWedgeNothing(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	n := l.serve(1)
	for _, data := range [][]byte{[]byte("\xff\xff poison"), nil} {
		testkit.NoError(t, l.nc.Publish(topology.Matching(0), data))
	}
	l.hint(1)
	n.saw(t, hints(2)) // the one without bytes is an empty one
	n.do(match.Effects{Acks: []uint64{1, 2, 9}})
	n.saw(t, func(*match.Inputs) error {
		stream, err := l.js.Stream(t.Context(), topology.MatchingStream(0))
		if err == nil && stream.CachedInfo().State.Msgs != 0 {
			err = fmt.Errorf("%d hints are left in the stream", stream.CachedInfo().State.Msgs)
		}
		return err
	})
}
