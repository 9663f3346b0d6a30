package batchclose_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/batchclose"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// log is that of a real server.
type log struct{ js jetstream.JetStream }

func (l log) LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error) {
	return natslog.LastForSubject(ctx, l.js, topology.HistoryStream(p), subject)
}

func (l log) Append(ctx context.Context, m natslog.Msg) (uint64, bool, error) {
	return natslog.Append(ctx, l.js.Conn(), m)
}

// TestTheLogTakesNoMemberBehindTheClose: of that batch in that partition, alone or in an atomic batch; others go on.
func TestTheLogTakesNoMemberBehindTheClose(t *testing.T) {
	t.Parallel()
	js, err := jetstream.New(natskit.Run(t).Connect(t))
	testkit.NoError(t, err)
	testkit.NoError(t, provision.Apply(t.Context(), js, topology.Partitioning{History: 2, Matching: 1}, provision.Options{}))
	l := log{js}
	key := batchclose.Key{Partition: 1, Domain: "shop", ID: "a", Made: 3}
	later := key
	later.Made = 4
	elsewhere := key
	elsewhere.Partition = 0
	member := func(k batchclose.Key) natslog.Msg {
		return k.Member(natslog.Msg{Subject: topology.SubmitBatch(k.Partition, 3, k.Domain, k.ID), Data: []byte("task")})
	}
	store := func(k batchclose.Key) error {
		_, _, err := l.Append(t.Context(), member(k))
		return err
	}
	atomic := func(k batchclose.Key) error {
		return testkit.Err(natslog.AppendAtomic(t.Context(), js.Conn(), []natslog.Msg{
			{Subject: topology.UniqueKey(k.Partition, k.Domain, "k"), Data: []byte("key")}, member(k), member(k),
		}))
	}
	testkit.NoError(t, errors.Join(store(key), store(key), atomic(key)))
	for range 2 {
		testkit.NoError(t, batchclose.Close(t.Context(), l, key, 1))
	}
	for name, err := range map[string]error{"alone": store(key), "in an atomic batch": atomic(key)} {
		if !errors.Is(err, natslog.ErrWrongLast) || !errors.Is(err, natslog.ErrNotStored) {
			t.Errorf("%s: %v", name, err)
		}
	}
	testkit.NoError(t, errors.Join(store(later), atomic(later), store(elsewhere)))
	for of, want := range map[batchclose.Key]bool{key: true, later: false, elsewhere: false} {
		closed, err := batchclose.Closed(t.Context(), l, of)
		testkit.NoError(t, err)
		testkit.Equal(t, "closed", closed, want)
	}
	testkit.NoError(t, batchclose.Keep(t.Context(), l, key, 1, time.Minute))
	if err := store(key); !errors.Is(err, natslog.ErrWrongLast) {
		t.Errorf("once it is kept for a while: %v", err)
	}
}
