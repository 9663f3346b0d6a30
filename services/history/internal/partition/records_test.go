package partition_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// record names a new folder for what TestI13WhatVersion2Writes stores.
var record = flag.String("record", "", "a new folder to keep the stored records of log version 2 in, seen from this package")

// sinceVersion2 are the fields that log version 2 has brought.
var sinceVersion2 = []string{
	"EventBatch.log_version", "EventBatch.shard", "EventBatch.shard_epoch", "EventBatch.delivered", "EventBatch.polls",
	"PollRef.worker", "PollRef.reply_to", "PollRef.json", "Event.limits", "Event.poll", "Event.undelivered",
	"Attempt.limits", "Attempt.granted", "Granted.shard", "Granted.shard_epoch", "Granted.request_id", "Granted.poll",
	"Checkpoint.log_version", "Checkpoint.fences", "ShardFence.shard", "ShardFence.epoch", "Batch.log_version", "kind 9",
}

// TestI13WhatVersion2Writes: an owner, with matching and workers at work, writes every field of log version 2, so
// that what it stores can be kept and replayed by later versions.
func TestI13WhatVersion2Writes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		d := s.deps("node-1")
		d.LogVersion = func() uint32 { return logversion.Fences }
		d.Config.CarryAfter = 8
		d.Config.PurgeEvery = time.Hour
		o, stop := run(d)
		<-o.Ready()
		s.liveInVersion2()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		stores := s.stores()
		seen := map[string]bool{}
		for name, messages := range stores {
			for _, m := range messages {
				var stored proto.Message = new(logv1.Batch)
				switch {
				case name == "checkpoint":
					stored = new(logv1.Checkpoint)
				case m.Subject == topology.Event(0):
					stored = new(logv1.EventBatch)
				}
				if err := proto.Unmarshal(m.Data, stored); err != nil {
					t.Fatal(err)
				}
				noteFields(stored.ProtoReflect(), seen)
			}
		}
		for _, field := range sinceVersion2 {
			if !seen[field] {
				t.Errorf("%s is not written", field)
			}
		}
		if seen["Event.not_after_ms"] {
			t.Error("an expiry has a date, which came with log version 3")
		}
		if *record != "" && !t.Failed() {
			for name, messages := range stores {
				testkit.WriteMessages(t, filepath.Join(*record, name+".log"), messages)
			}
		}
	})
}

// noteFields notes which fields are set in m, and the kinds of events.
func noteFields(m protoreflect.Message, seen map[string]bool) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(f.Parent().Name()) + "." + string(f.Name())
		seen[name] = true
		switch {
		case name == "Event.kind":
			seen[fmt.Sprint("kind ", v.Enum())] = true
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				noteFields(v.List().Get(i).Message(), seen)
			}
		case f.Message() != nil:
			noteFields(v.Message(), seen)
		}
		return true
	})
}

// liveInVersion2 gives attempts the fates that are distinguished since version 2.
func (s *shell) liveInVersion2() {
	var all []ids.TaskID
	var records []*logv1.Record
	for n := range uint64(6) {
		id := newID(n + 1)
		all = append(all, id)
		r := task(id, "shop")
		r.Policy.HeartbeatTimeoutMs = 2_000
		records = append(records, r)
	}
	records[0].Policy.HeartbeatTimeoutMs = 0 // it runs for long, without a heartbeat
	records[5].DueAtMs = time.Now().Add(time.Hour).UnixMilli()
	data, err := (&logv1.Batch{Tasks: records, LogVersion: logversion.Fences}).MarshalVT()
	if err != nil {
		s.t.Fatal(err)
	}
	s.world.AppendSubmit(3, data)
	end := func(kind logv1.EventKind, n int, version uint32) *logv1.Event {
		e := grab(all[n], 1, version)
		e.Kind, e.Poll = kind, 0
		return e
	}
	s.fence(1)
	s.batch(1, 2, 0, inbox("inbox-1"), grab(all[0], 1, 1, "domain", "type/t"), grab(all[1], 1, 1, "type/t"))
	s.batch(1, 3, 0, inbox("inbox-2"), grab(all[2], 1, 1, "domain", "type/t"), grab(all[3], 1, 1))
	s.batch(1, 4, 0, inbox("inbox-3"), grab(all[4], 1, 1, "type/t"))
	s.event(end(logv1.EventKind_EVENT_KIND_COMPLETED, 1, 1))
	later := end(logv1.EventKind_EVENT_KIND_FAILED, 3, 1)
	later.DelayMs, later.Domain = 3_600_000, "shop"
	s.event(later) // its last attempt
	s.fence(2)
	s.batch(1, 5, 0, inbox("inbox-4"), grab(all[1], 1, 2, "type/t"))
	s.batch(2, 2, 1, inbox("inbox-5"), end(logv1.EventKind_EVENT_KIND_RELEASED, 4, 1), grab(all[4], 1, 2, "type/t"))
	s.event(end(logv1.EventKind_EVENT_KIND_COMPLETED, 4, 2))
	time.Sleep(5 * time.Second) // no one is heard of
	s.batch(2, 3, 1, inbox("inbox-6"), grab(all[2], 1, 2, "domain", "type/t"))
	s.event(end(logv1.EventKind_EVENT_KIND_COMPLETED, 2, 2))
	time.Sleep(30 * time.Second) // the first is carried forward
}

// stores are the messages of the stores, as natshistory has them.
func (s *shell) stores() map[string][]testkit.Message {
	var log, timer []testkit.Message
	ctx := context.Background()
	last, _, err := s.world.Ends(ctx)
	for source := range partition.Source(partition.Sources) {
		subject := topology.Event(0)
		if source != partition.SourceEvents {
			subject = topology.Submit(0, ids.Lane(source), "shop", "mail")
		}
		err = cmp.Or(err, s.world.Read(ctx, source, "", 1, last, func(r partition.Record) error {
			log = append(log, testkit.Message{Subject: subject, Seq: r.Seq, At: r.Time.UnixMilli(), Data: r.Data})
			return nil
		}))
	}
	slices.SortFunc(log, func(a, b testkit.Message) int { return int(a.Seq) - int(b.Seq) })
	now := time.Now().UnixMilli()
	err = cmp.Or(err, s.world.Tail(ctx, 0, func(data []byte) error {
		timer = append(timer, testkit.Message{Subject: topology.Timer(0, 0), Seq: uint64(len(timer) + 1), At: now, Data: data})
		return nil
	}))
	checkpoint, err2 := s.world.Checkpoint().MarshalVT()
	archive, err3 := (&logv1.Batch{Tasks: s.world.ArchivedTasks()}).MarshalVT()
	if err = cmp.Or(cmp.Or(err, err2), err3); err != nil {
		s.t.Fatal(err)
	}
	return map[string][]testkit.Message{
		"history": log, "timer": timer,
		"archive":    {{Subject: topology.ArchiveOf(0, "shop"), Seq: s.world.Checkpoint().ArchiveSeq, At: now, Data: archive}},
		"checkpoint": {{Subject: topology.HistoryCheckpoint(0), Seq: 1, At: now, Data: checkpoint}},
	}
}
