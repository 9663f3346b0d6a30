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

// TestForgetTakesDomainsInTurn: beside one that needs everything, however many others are forgotten in a few rounds.
func TestForgetTakesDomainsInTurn(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "files and deletes much")
	owner, _ := serverPorts(t)
	log := NewLog(Config{NATS: owner.NATS, JetStream: owner.JetStream, Log: slog.New(slog.DiscardHandler)})
	store(t, owner.NATS, topology.Submit(0, 3, "stuck", "mail"), []byte("b"))
	last := uint64(0)
	for i := range forgetMax + 50 {
		last = store(t, owner.NATS, topology.Submit(0, 3, fmt.Sprint("shop-", i), "mail"), []byte("b"))
	}
	last = max(last, store(t, owner.NATS, topology.SubmitShared(0, 3), []byte("b")))
	levels := replica.Levels{
		Lanes: [ids.Lanes]uint64{3: last}, Queues: []replica.QueueLevel{{Queue: replica.Queue{Lane: 3, Place: "stuck"}}},
	}
	left := func() (n int, more error) {
		t.Helper()
		more = log.Forget(t.Context(), levels)
		err := natslog.ReadAll(t.Context(), owner.JetStream, natslog.ReadConfig{Stream: topology.HistoryStream(0), Filters: []string{topology.SubmitLane(0, 3)}},
			func(natslog.Record) error { n++; return nil })
		testkit.NoError(t, err)
		return n, more
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
		var left []uint64
		testkit.NoError(t, natslog.ReadAll(t.Context(), owner.JetStream,
			natslog.ReadConfig{Stream: topology.HistoryStream(0), Filters: []string{topology.SubmitLane(0, 3)}},
			func(r natslog.Record) error { left = append(left, r.Seq); return nil }))
		testkit.Equal(t, what, left, want)
	}
	forget("left beside a domain that is behind", seqs[1:], at("shop", seqs[0]), at("shop.bulk", seqs[4]))
	forget("left beside a tasklist that is behind", []uint64{seqs[2], seqs[4]}, at("shop.bulk", seqs[0]))
}
