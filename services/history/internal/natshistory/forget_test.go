package natshistory

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestForgetTakesDomainsInTurn: beside one that needs everything, however many others are forgotten in a few rounds. A later lane of which nothing waits for
// the next one makes no difference.
func TestForgetTakesDomainsInTurn(t *testing.T) {
	t.Parallel()
	owner, _ := serverPorts(t)
	log := NewLog(Config{NATS: owner.NATS, JetStream: owner.JetStream, Log: slog.New(slog.DiscardHandler)})
	store(t, owner.NATS, topology.Submit(0, 3, "stuck", "mail"), []byte("b"))
	last := uint64(0)
	for i := range forgetMax + 50 {
		last = store(t, owner.NATS, topology.Submit(0, 3, fmt.Sprint("shop-", i), "mail"), []byte("b"))
	}
	last = max(last, store(t, owner.NATS, topology.SubmitShared(0, 3), []byte("b")))
	levels := replica.Levels{
		Lanes:  [ids.Lanes]uint64{3: last},
		Queues: []replica.QueueLevel{{Queue: replica.Queue{Lane: 3, Place: "stuck"}}, {Queue: replica.Queue{Lane: 4, Place: "stuck"}}},
	}
	left := func() (n int, more error) {
		t.Helper()
		more = log.Forget(t.Context(), levels)
		return len(filedIn(t, owner, 3)), more
	}
	for i := range forgetMax + 50 { // so that none of them disappears
		store(t, owner.NATS, topology.Submit(0, 3, fmt.Sprint("shop-", i), "mail"), []byte("b"))
	}
	const kept = forgetMax + 50
	if n, err := left(); n > kept+52 || !errors.Is(err, partition.ErrMore) {
		t.Errorf("%d messages are left after one round, %v", n, err)
	}
	if n, err := left(); n != kept+1 || !errors.Is(err, partition.ErrMore) {
		t.Errorf("%d messages are left, the stuck one is needed; %v", n, err)
	}
}

// TestForgetTakesWholeDomains, however many tasklists they have, and as many as it may at a time.
func TestForgetTakesWholeDomains(t *testing.T) {
	t.Parallel()
	owner, _ := serverPorts(t)
	log := NewLog(Config{NATS: owner.NATS, JetStream: owner.JetStream, Log: slog.New(slog.DiscardHandler)})
	needed := store(t, owner.NATS, topology.Submit(0, 3, "stuck", "mail"), []byte("b"))
	last := uint64(0)
	for i := range forgetMax - 2 { // beside stuck and wide
		store(t, owner.NATS, topology.Submit(0, 3, fmt.Sprint("shop-", i), "mail"), []byte("b"))
	}
	for i := range forgetMax {
		last = store(t, owner.NATS, topology.Submit(0, 3, "wide", fmt.Sprint("list-", i)), []byte("b"))
	}
	testkit.NoError(t, log.Forget(t.Context(), replica.Levels{
		Lanes: [ids.Lanes]uint64{3: last}, Queues: []replica.QueueLevel{{Queue: replica.Queue{Lane: 3, Place: "stuck"}}},
	}))
	testkit.Equal(t, "left", filedIn(t, owner, 3), []uint64{needed})
}

// filedIn are the messages of a lane.
func filedIn(t *testing.T, of Config, lane ids.Lane) (left []uint64) {
	t.Helper()
	testkit.NoError(t, natslog.ReadAll(t.Context(), of.JetStream,
		natslog.ReadConfig{Stream: topology.HistoryStream(0), Filters: []string{topology.SubmitLane(0, lane)}},
		func(r natslog.Record) error { left = append(left, r.Seq); return nil }))
	return left
}

// TestI1_ForgetKeepsWhatAPlaceHasNotRead: a tasklist that is split off keeps its messages beside those of its domain, and a domain's queue that is behind
// keeps those of the tasklist, which it reads, too.
func TestI1_ForgetKeepsWhatAPlaceHasNotRead(t *testing.T) {
	t.Parallel()
	owner, _ := serverPorts(t)
	log := NewLog(Config{NATS: owner.NATS, JetStream: owner.JetStream, Log: slog.New(slog.DiscardHandler)})
	var seqs []uint64
	for _, list := range []string{"bulk", "mail", "bulk", "mail", "bulk"} {
		seqs = append(seqs, store(t, owner.NATS, topology.Submit(0, 3, "shop", list), []byte("b")))
	}
	at := func(place ids.Place, seq uint64) replica.QueueLevel {
		return replica.QueueLevel{Queue: replica.Queue{Lane: 3, Place: place}, Seq: seq}
	}
	forget := func(what string, want []uint64, queues ...replica.QueueLevel) {
		t.Helper()
		testkit.NoError(t, log.Forget(t.Context(), replica.Levels{Lanes: [ids.Lanes]uint64{3: seqs[4]}, Queues: queues}))
		testkit.Equal(t, what, filedIn(t, owner, 3), want)
	}
	forget("left beside a domain that is behind", seqs[1:], at("shop", seqs[0]), at("shop.bulk", seqs[4]))
	forget("left beside a tasklist that is behind", []uint64{seqs[2], seqs[4]}, at("shop.bulk", seqs[0]))
}
