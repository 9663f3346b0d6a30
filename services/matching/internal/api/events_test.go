package api

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func testEncoder(version uint32) *encoder {
	return newEncoder(
		Config{Partitioning: topology.Partitioning{History: 2}, Shard: 3, Epoch: 7, LogVersion: func() uint32 { return version }},
		func(p int) string { return fmt.Sprint("inbox.", p) },
	)
}

func (e *encoder) read(t rapid.TB, b *grab.Batch) *logv1.EventBatch {
	m := new(logv1.EventBatch)
	testkit.NoError(t, m.UnmarshalVT(e.encode(b)))
	return m
}

func drawTrigger(t *rapid.T) ids.Trigger {
	return ids.Trigger{
		ID:      ids.TaskID(rapid.SliceOfN(rapid.Byte(), len(ids.TaskID{}), len(ids.TaskID{})).Draw(t, "id")),
		Version: rapid.Uint32().Draw(t, "version"), Position: ids.Position(rapid.Uint64().Draw(t, "position")),
	}
}

func drawBatch(t *rapid.T) *grab.Batch {
	b := &grab.Batch{
		Partition: rapid.IntRange(0, 1).Draw(t, "partition"), Number: rapid.Uint64().Draw(t, "number"),
		Delivered: rapid.Uint64().Draw(t, "delivered"), Fence: rapid.Bool().Draw(t, "fence"),
	}
	if b.Fence {
		return b
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "polls") {
		b.Polls = append(b.Polls, grab.PollRef{Domain: fmt.Sprint("d", i), Worker: fmt.Sprint("w", i), WorkerID: fmt.Sprint("id", i), ReplyTo: fmt.Sprint("r", i), JSON: rapid.Bool().Draw(t, "json"), Max: i + 1, BytesMax: i * 1000})
	}
	for range rapid.IntRange(0, 5).Draw(t, "grabs") {
		g := grab.Grab{Trigger: drawTrigger(t), Nonce: rapid.Uint64().Draw(t, "nonce")}
		for i := range rapid.IntRange(0, 3).Draw(t, "path") {
			g.Path = append(g.Path, table.Ref(fmt.Sprint("type/", i)))
		}
		if len(b.Polls) > 0 {
			g.Poll = rapid.IntRange(0, len(b.Polls)-1).Draw(t, "poll")
			b.Grabs = append(b.Grabs, g)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "hand-backs") {
		trigger := drawTrigger(t)
		b.HandBacks = append(b.HandBacks, grab.HandBack{
			ID: trigger.ID, Version: trigger.Version, Position: trigger.Position, Nonce: rapid.Uint64().Draw(t, "nonce"), Domain: "d",
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "stops") {
		b.Stops = append(b.Stops, grab.Stop{
			Trigger: drawTrigger(t), Domain: "d", Limit: "type/a", ReadyBy: rapid.Int64().Draw(t, "ready"), Displace: rapid.Bool().Draw(t, "displace"),
		})
	}
	return b
}

// wanted is the batch in the words of the log.
func wanted(b *grab.Batch, version uint32) *logv1.EventBatch {
	m := &logv1.EventBatch{
		ReplyTo: fmt.Sprint("inbox.", b.Partition), RequestId: b.Number, LogVersion: version, Shard: 4, ShardEpoch: 7, Delivered: b.Delivered,
	}
	for _, p := range b.Polls {
		m.Polls = append(m.Polls, &logv1.PollRef{Domain: p.Domain, Worker: p.Worker, WorkerId: p.WorkerID, ReplyTo: p.ReplyTo, Json: p.JSON, MaxTasks: int32(p.Max), BytesMax: int64(p.BytesMax)})
	}
	if b.Fence {
		m.Events = append(m.Events, &logv1.Event{Kind: logv1.EventKind_EVENT_KIND_FENCE})
	}
	for _, g := range b.Grabs {
		e := &logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_STARTED, TaskId: g.Trigger.ID[:], Position: uint64(g.Trigger.Position),
			Version: g.Trigger.Version, Nonce: g.Nonce, Poll: uint32(g.Poll + 1),
		}
		for _, ref := range g.Path {
			e.Limits = append(e.Limits, string(ref))
		}
		m.Events = append(m.Events, e)
	}
	for _, h := range b.HandBacks {
		m.Events = append(m.Events, &logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_RELEASED, TaskId: h.ID[:], Position: uint64(h.Position),
			Version: h.Version, Nonce: h.Nonce, Domain: h.Domain, Message: handBackReason,
		})
	}
	for _, s := range b.Stops {
		e := &logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_REJECT, TaskId: s.Trigger.ID[:], Position: uint64(s.Trigger.Position), Version: s.Trigger.Version,
			Domain: "d", ReadyByMs: s.ReadyBy, Message: "limit type/a is full",
		}
		if s.Displace {
			e.Kind, e.Message = logv1.EventKind_EVENT_KIND_DISPLACE, "limit type/a is full: the oldest attempt makes room for a newer task"
		}
		m.Events = append(m.Events, e)
	}
	return m
}

// TestI13BatchesCarryTheClustersVersion, and those of one encoder hold nothing of the ones before. R21.
func TestI13BatchesCarryTheClustersVersion(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.Uint32Range(1, 2).Draw(t, "version")
		e := testEncoder(version)
		for range 4 {
			b := drawBatch(t)
			if got, want := e.read(t, b), wanted(b, version); !proto.Equal(got, want) {
				t.Fatalf("\n got %v\nwant %v", got, want)
			}
		}
	})
}

// grabs is a batch as large as they get.
func grabs(n int) *grab.Batch {
	b := &grab.Batch{Number: 1, Polls: make([]grab.PollRef, 10)}
	path := []table.Ref{"type/pay"}
	for i := range n {
		b.Grabs = append(b.Grabs, grab.Grab{Trigger: ids.Trigger{Version: 1, Position: 1 << 30}, Nonce: uint64(i), Path: path, Poll: i % 10})
	}
	return b
}

// Nothing is allocated per event.
func TestEncodingMakesNoGarbage(t *testing.T) {
	e, b := testEncoder(1), grabs(1000)
	e.encode(b)
	if n := testing.AllocsPerRun(10, func() { e.encode(b) }); n > 1 {
		t.Errorf("%v allocations for a batch of 1000", n)
	}
}

func BenchmarkEncodeGrabs(b *testing.B) {
	e, batch := testEncoder(1), grabs(100)
	b.ReportAllocs()
	for n := 0; n < b.N; n += 100 {
		e.encode(batch)
	}
}
