package api

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
)

// handBackReason is the reason in a task's history for an attempt that was handed back.
const handBackReason = "no worker received it"

// eventsOf is a batch as the log has it: the fence, or grabs, or hand-backs, or stops.
func (p *Port) eventsOf(b *match.Batch) *logv1.EventBatch {
	m := &logv1.EventBatch{
		ReplyTo: p.verdictsTo(b.Partition), RequestId: b.Number, LogVersion: p.LogVersion(),
		Shard: uint32(p.Shard) + 1, ShardEpoch: p.Epoch, Delivered: b.Delivered,
		Events: make([]*logv1.Event, 0, len(b.Grabs)+len(b.HandBacks)+len(b.Stops)+1),
	}
	for _, one := range b.Polls {
		m.Polls = append(m.Polls, &logv1.PollRef{
			Domain: one.Domain, Worker: one.Worker, WorkerId: one.WorkerID, ReplyTo: one.ReplyTo, Json: one.JSON,
		})
	}
	if b.Fence {
		m.Events = append(m.Events, &logv1.Event{Kind: logv1.EventKind_EVENT_KIND_FENCE})
	}
	for i := range b.Grabs {
		m.Events = append(m.Events, grabOf(&b.Grabs[i]))
	}
	for i := range b.HandBacks {
		h := &b.HandBacks[i]
		m.Events = append(m.Events, &logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_RELEASED, TaskId: h.ID[:], Position: uint64(h.Position), Version: h.Version,
			Nonce: h.Nonce, Domain: h.Domain, Message: handBackReason,
		})
	}
	for i := range b.Stops {
		m.Events = append(m.Events, stopOf(&b.Stops[i]))
	}
	return m
}

func grabOf(g *match.Grab) *logv1.Event {
	one := &logv1.Event{
		Kind: logv1.EventKind_EVENT_KIND_STARTED, TaskId: g.Trigger.ID[:], Position: uint64(g.Trigger.Position),
		Version: g.Trigger.Version, Nonce: g.Nonce, Poll: uint32(g.Poll) + 1,
	}
	if len(g.Path) > 0 {
		one.Limits = as[string](g.Path)
	}
	return one
}

func stopOf(s *match.Stop) *logv1.Event {
	one := &logv1.Event{
		Kind: logv1.EventKind_EVENT_KIND_REJECT, TaskId: s.Trigger.ID[:], Position: uint64(s.Trigger.Position),
		Version: s.Trigger.Version, Domain: s.Domain, ReadyByMs: s.ReadyBy, Message: "limit " + string(s.Limit) + " is full",
	}
	if s.Displace {
		one.Kind = logv1.EventKind_EVENT_KIND_DISPLACE
		one.Message += ": the oldest attempt makes room for a newer task"
	}
	return one
}
