package natshistory

import (
	"errors"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// R18: a search costs what its lanes have not read, and one that would read without end
// says that it was given up. Lanes that were never used, or not recently, count as read.
func TestUnreadIsBounded(t *testing.T) {
	owner, reader := archivePorts(t)
	store := func(subject string, data []byte) uint64 {
		t.Helper()
		seq, _, err := natslog.Append(t.Context(), owner.NATS, natslog.Msg{Subject: subject, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	created := time.Now() // of both: a search begins there, however long the log takes to be written
	id, absent := ids.NewTaskID(created, 0, 1), ids.NewTaskID(created, 0, 2)
	batch, err := (&logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: "shop"}}}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	early := store(topology.Submit(0, 3, "shop", "mail"), batch)
	event := make([]byte, 1_000_000)
	for range scanBytesMax/len(event) + 3 {
		store(topology.Event(0), event)
	}
	late := store(topology.Submit(0, 1, "shop", "mail"), batch)
	for _, c := range []struct {
		what    string
		id      ids.TaskID
		read    [ids.Lanes]uint64
		at      ids.Position
		tooLong bool
	}{
		{"all is read", absent, [ids.Lanes]uint64{1: late, 3: early}, 0, false},
		{"the end is not", absent, [ids.Lanes]uint64{3: early}, 0, false},
		{"the begin is not", absent, [ids.Lanes]uint64{1: late}, 0, true},
		{"it lies at the end", id, [ids.Lanes]uint64{3: early}, ids.NewPosition(late, 1), false},
		{"it lies at the begin", id, [ids.Lanes]uint64{1: late}, ids.NewPosition(early, 3), false},
	} {
		before := reader.cfg.NATS.Stats().InBytes
		found, at, err := reader.Unread(t.Context(), c.id, 0, replica.Levels{Lanes: c.read})
		if errors.Is(err, partition.ErrSearchTooLong) != c.tooLong || !c.tooLong && err != nil || (found != nil) != (c.at != 0) || found != nil && at != c.at {
			t.Errorf("%s: %v at %v: %v", c.what, found, at, err)
		}
		const little = 8 << 10
		if cost := reader.cfg.NATS.Stats().InBytes - before; cost > little && c.at == 0 && !c.tooLong {
			t.Errorf("%s: %d bytes were read", c.what, cost)
		}
	}
}

// What is void is not found, wherever it lies.
func TestI1_WhatIsVoidIsNotFoundUnread(t *testing.T) {
	owner, reader := archivePorts(t)
	for within, found := range map[int64]bool{0: true, 1: false, 3_600_000: true} {
		id := ids.NewTaskID(time.Now().Add(-4*time.Second), 0, uint64(within))
		batch, err := (&logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: "shop", WithinMs: within}}}).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		seq, _, err := natslog.Append(t.Context(), owner.NATS, natslog.Msg{Subject: topology.Submit(0, 3, "shop", "mail"), Data: batch})
		if err != nil {
			t.Fatal(err)
		}
		for _, hint := range []uint64{0, seq} {
			r, _, err := reader.Unread(t.Context(), id, hint, replica.Levels{Lanes: [ids.Lanes]uint64{}})
			if err != nil || (r != nil) != found {
				t.Errorf("to be stored within %d ms, hint %d: %v, %v", within, hint, r, err)
			}
		}
	}
}

// A repeat may be stored long after the time in its id, and is found all the same.
func TestI1_WhatWasStoredAtTheLastMomentIsFoundUnread(t *testing.T) {
	owner, reader := archivePorts(t)
	id := ids.NewTaskID(time.Now().Add(-topology.SubmitLatest), 0, 1)
	batch, err := (&logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: "shop"}}}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := natslog.Append(t.Context(), owner.NATS, natslog.Msg{Subject: topology.Submit(0, 3, "shop", "mail"), Data: batch}); err != nil {
		t.Fatal(err)
	}
	if r, _, err := reader.Unread(t.Context(), id, 0, replica.Levels{Lanes: [ids.Lanes]uint64{}}); err != nil || r == nil {
		t.Errorf("%v, %v", r, err)
	}
}
