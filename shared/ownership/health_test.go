package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestR43_ReadinessKnowsWhetherJetStreamStores: a node whose heartbeats no one stores for longer than an
// election takes is not ready; one that has just begun, or whose bucket elects a leader, is not blamed.
func TestR43_ReadinessKnowsWhetherJetStreamStores(t *testing.T) {
	m := newMembers(nil, "history", "me", BeatDefault, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		what         string
		began, taken time.Duration // ago; 0 = none was taken
		wrong        bool
	}{
		{"it has just begun", time.Minute, 0, false},
		{"all is well", time.Minute, time.Second, false},
		{"an election", time.Minute, 9 * time.Second, false},
		{"JetStream is away", time.Minute, 20 * time.Second, true},
	} {
		m.origin = time.Now().Add(-c.began)
		m.taken.Store(0)
		if c.taken > 0 {
			m.taken.Store(int64(c.began - c.taken))
		}
		s := &Share{}
		s.members.Store(m)
		b := &Beacon{}
		b.members.Store(m)
		for _, err := range []error{s.Check(), b.Check()} {
			if (err != nil) != c.wrong {
				t.Errorf("%s: %v", c.what, err)
			}
		}
	}
	testkit.Check(t, errors.Join((*Share)(nil).Check(), (*Beacon)(nil).Check(), (&Share{}).Check(), (&Beacon{}).Check()))
}

// TestPartitionsWithoutAnOwnerAreNamed: they are a warning and a metric, and do not make a node
// unready.
func TestPartitionsWithoutAnOwnerAreNamed(t *testing.T) {
	s := New(Config{Service: "history", Node: "me", Count: 5})
	if n := s.noteUnowned([]int{0, 3}, []int{1}); n != 2 {
		t.Errorf("%d are without an owner", n)
	}
	if err := s.Warn(); err == nil || !strings.Contains(err.Error(), fmt.Sprint([]int{2, 4})) {
		t.Errorf("%v", err)
	}
	testkit.Check(t, s.Check())
	s.noteUnowned([]int{0, 2, 3}, []int{1, 4})
	testkit.Check(t, errors.Join(s.Warn(), (*Share)(nil).Warn()))
}

// failing is a members bucket whose writes end as the test says.
type failing struct {
	jetstream.KeyValue
	err error
}

func (b *failing) Put(context.Context, string, []byte) (uint64, error) { return 1, b.err }

// TestOnlyABucketWithoutALeaderExcusesSilence: a write that found no leader is a sign that all are silent, one without
// a connection is none; one that was taken counts from when it began.
func TestOnlyABucketWithoutALeaderExcusesSilence(t *testing.T) {
	for _, c := range []struct {
		err            error
		taken, refused bool
	}{
		{nil, true, false},
		{nats.ErrNoResponders, false, true},
		{jetstream.ErrNoStreamResponse, false, true},
		{context.DeadlineExceeded, false, true},
		{nats.ErrConnectionClosed, false, false},
		{nats.ErrConnectionReconnecting, false, false},
	} {
		kv := &failing{err: c.err}
		m := newMembers(kv, "matching", "me", BeatDefault, slog.New(slog.DiscardHandler))
		m.announce(Announcement{})
		if err := m.put(t.Context()); !errors.Is(err, c.err) {
			t.Fatal(err)
		}
		if s := m.signs(); s.taken.IsZero() == c.taken || s.refused.IsZero() == c.refused || s.beats != 1 {
			t.Errorf("%v: %+v", c.err, s)
		}
	}
}
