package quarantine_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

const soon = 60 * time.Second

func cluster(t *testing.T) (*natskit.Server, jetstream.JetStream) {
	t.Helper()
	srv := natskit.Run(t)
	js, err := jetstream.New(srv.Connect(t))
	testkit.NoError(t, err)
	testkit.NoError(t, provision.Apply(t.Context(), js, topology.Partitioning{History: 2, Matching: 1}, provision.Options{}))
	return srv, js
}

func put(t *testing.T, js jetstream.JetStream, q *logv1.Quarantined) {
	t.Helper()
	testkit.NoError(t, quarantine.Put(t.Context(), js.Conn(), q))
}

func list(t *testing.T, js jetstream.JetStream, f quarantine.Filter) []quarantine.Item {
	t.Helper()
	var all []quarantine.Item
	testkit.NoError(t, quarantine.List(t.Context(), js, f, func(i quarantine.Item) error { all = append(all, i); return nil }))
	return all
}

var everything = quarantine.Filter{Partition: -1}

func unreadable(service string, p int32, seq uint64, data string) *logv1.Quarantined {
	return &logv1.Quarantined{
		Kind: logv1.QuarantineKind_QUARANTINE_KIND_UNREADABLE, Service: service, Partition: p, Reason: "malformed",
		OriginStream: topology.TimerStream(int(p)), OriginSubject: topology.Timer(int(p), 7), OriginSeq: seq, Data: []byte(data),
	}
}

// TestSetApartOnce: a process that meets the same record again, perhaps after a restart of
// the server, does not store it twice. R19.
func TestSetApartOnce(t *testing.T) {
	srv, js := cluster(t)
	for range 2 {
		for range 3 {
			put(t, js, unreadable("timer", 0, 4, "x"))
		}
		srv.Restart(t)
		testkit.Eventually(t, soon, func() error { return quarantine.Put(t.Context(), js.Conn(), unreadable("timer", 0, 4, "x")) })
	}
	put(t, js, unreadable("timer", 0, 5, "x"))
	put(t, js, unreadable("timer", 0, 4, "y")) // of a store created again
	put(t, js, unreadable("timer", 1, 4, "x"))
	put(t, js, unreadable("history", 1, 4, "x"))
	write := &logv1.Quarantined{
		Kind: logv1.QuarantineKind_QUARANTINE_KIND_UNWRITABLE, Service: "history", Partition: 1, Reason: "too large",
		TargetSubject: topology.Timer(1, 9), Data: []byte("z"), AtMs: 12,
	}
	put(t, js, write)
	for want, f := range map[int]quarantine.Filter{
		6: everything,
		4: {Service: "timer", Partition: -1},
		3: {Service: "timer", Partition: 0},
		2: {Service: "history", Partition: 1},
		1: {Service: "history", Partition: -1, Kind: logv1.QuarantineKind_QUARANTINE_KIND_UNWRITABLE},
		0: {Service: "matching", Partition: -1},
	} {
		if got := list(t, js, f); len(got) != want {
			t.Errorf("%+v: %d items, want %d", f, len(got), want)
		}
	}
	last := list(t, js, everything)[5]
	got, err := quarantine.Get(t.Context(), js, last.Seq)
	if err != nil || got.Reason != "too large" || got.AtMs != 12 || got.Target() != topology.Timer(1, 9) || string(got.Data) != "z" {
		t.Errorf("%+v %v", got, err)
	}
}

// TestTheWholeOfALargeItem comes back byte for byte, though no one message holds it.
// R19.
func TestTheWholeOfALargeItem(t *testing.T) {
	_, js := cluster(t)
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	q := unreadable("timer", 0, 1, "")
	q.Data = data
	put(t, js, q)
	put(t, js, q)
	put(t, js, unreadable("timer", 0, 2, "small"))
	all := list(t, js, everything)
	testkit.MustEqual(t, "items", len(all), 2)
	got, err := quarantine.Get(t.Context(), js, all[0].Seq)
	if err != nil || !bytes.Equal(got.Data, data) || got.Reason != "malformed" {
		t.Errorf("%d bytes: %v", len(got.Data), err)
	}
	for _, seq := range []uint64{all[0].Seq + 1, 999} { // a part of it, and nothing
		if _, err := quarantine.Get(t.Context(), js, seq); !errors.Is(err, quarantine.ErrNotFound) {
			t.Errorf("item %d: %v", seq, err)
		}
	}
	// What can never be written stays.
	if _, err := quarantine.Redrive(t.Context(), js, all[0].Seq); !natslog.Permanent(err) {
		t.Errorf("redriven: %v", err)
	}
	testkit.Equal(t, "items", len(list(t, js, everything)), 2)
	for _, item := range all {
		testkit.Check(t, quarantine.Drop(t.Context(), js, item.Seq))
		if err := quarantine.Drop(t.Context(), js, item.Seq); !errors.Is(err, quarantine.ErrNotFound) {
			t.Errorf("dropped twice: %v", err)
		}
	}
	info, err := js.Stream(t.Context(), topology.QuarantineStream)
	if err != nil || info.CachedInfo().State.Msgs != 0 {
		t.Errorf("left: %+v %v", info.CachedInfo().State, err)
	}
}

// TestRedriveKeepsTheTTL: a finished task that comes back into the archive expires there.
func TestRedriveKeepsTheTTL(t *testing.T) {
	_, js := cluster(t)
	for seconds, want := range map[int64]string{0: "", 3600: "3600s"} {
		q := &logv1.Quarantined{
			Kind: logv1.QuarantineKind_QUARANTINE_KIND_UNWRITABLE, Service: "history", Partition: 1,
			TargetSubject: topology.ArchiveOf(1, "shop"), Data: []byte(want), TtlS: seconds,
		}
		put(t, js, q)
		seq, err := quarantine.Redrive(t.Context(), js, list(t, js, everything)[0].Seq)
		testkit.NoError(t, err)
		r, err := natslog.Get(t.Context(), js, topology.ArchiveStream(1), seq)
		if err != nil || r == nil || r.Header.Get(jetstream.MsgTTLHeader) != want {
			t.Errorf("kept for %d s: %+v %v", seconds, r, err)
		}
	}
}

// TestRedrive stores first and removes then. R19.
func TestRedrive(t *testing.T) {
	_, js := cluster(t)
	put(t, js, unreadable("timer", 1, 4, "back to the origin"))
	q := unreadable("timer", 1, 5, "to the target")
	q.TargetSubject = topology.Timer(1, 8)
	put(t, js, q)
	q = unreadable("timer", 1, 6, "to nowhere")
	q.TargetSubject = "nowhere"
	put(t, js, q)
	all := list(t, js, everything)
	var stored []string
	for _, item := range all[:2] {
		seq, err := quarantine.Redrive(t.Context(), js, item.Seq)
		testkit.NoError(t, err)
		r, err := natslog.Get(t.Context(), js, topology.TimerStream(1), seq)
		if err != nil || r == nil {
			t.Fatalf("%v %v", r, err)
		}
		stored = append(stored, fmt.Sprintf("%s: %s", r.Subject, r.Data))
	}
	want := []string{topology.Timer(1, 7) + ": back to the origin", topology.Timer(1, 8) + ": to the target"}
	if !slices.Equal(stored, want) {
		t.Errorf("%q, want %q", stored, want)
	}
	if _, err := quarantine.Redrive(t.Context(), js, all[2].Seq); err == nil {
		t.Error("stored nowhere, and no error")
	}
	if left := list(t, js, everything); len(left) != 1 || string(left[0].Data) != "to nowhere" {
		t.Errorf("left: %v", left)
	}
	if _, err := quarantine.Redrive(t.Context(), js, all[0].Seq); !errors.Is(err, quarantine.ErrNotFound) {
		t.Errorf("redriven twice: %v", err)
	}
}
