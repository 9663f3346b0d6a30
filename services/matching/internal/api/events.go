package api

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
)

// handBackReason is the reason in a task's history for an attempt that was handed back.
const handBackReason = "no worker received it"

// encoder writes batches of events. It reuses its memory, which is large: what encode
// returns is good until the next call.
type encoder struct {
	cfg     Config
	replyTo []string // by partition

	batch logv1.EventBatch
	// events and polls are the elements of the batch's slices.
	events []logv1.Event
	polls  []logv1.PollRef
	data   []byte
}

func newEncoder(cfg Config, replyTo func(partition int) string) *encoder {
	e := &encoder{cfg: cfg}
	for p := range cfg.Partitioning.History {
		e.replyTo = append(e.replyTo, replyTo(p))
	}
	return e
}

// encode writes a batch as a logv1.EventBatch: the fence, or grabs, or
// hand-backs, or stops.
func (e *encoder) encode(b *grab.Batch) []byte {
	m := &e.batch
	m.ReplyTo, m.RequestId = e.replyTo[b.Partition], b.Number
	m.LogVersion = e.cfg.LogVersion()
	m.Polls = m.Polls[:0]
	m.Shard, m.ShardEpoch, m.Delivered = uint32(e.cfg.Shard)+1, e.cfg.Epoch, b.Delivered
	e.pollRefs(b.Polls)
	e.room(len(b.Grabs) + len(b.HandBacks) + len(b.Stops) + 1)
	m.Events = m.Events[:0]
	if b.Fence {
		e.event().Kind = logv1.EventKind_EVENT_KIND_FENCE
	}
	for i := range b.Grabs {
		e.grab(&b.Grabs[i])
	}
	for i := range b.HandBacks {
		e.handBack(&b.HandBacks[i])
	}
	for i := range b.Stops {
		e.stop(&b.Stops[i])
	}
	e.data = slices.Grow(e.data[:0], m.SizeVT())[:m.SizeVT()]
	if _, err := m.MarshalToSizedBufferVT(e.data); err != nil {
		panic("api: " + err.Error()) // only strings and numbers inside
	}
	return e.data
}

// room makes sure that so many events need no more memory.
func (e *encoder) room(n int) {
	if n > len(e.events) {
		e.events = make([]logv1.Event, max(64, 2*n))
	}
}

// event adds an empty event, which keeps the memory of its limits.
func (e *encoder) event() *logv1.Event {
	one := &e.events[len(e.batch.Events)]
	limits := one.Limits[:0]
	one.Reset()
	one.Limits = limits
	e.batch.Events = append(e.batch.Events, one)
	return one
}

func (e *encoder) grab(g *grab.Grab) {
	one := e.event()
	one.Kind = logv1.EventKind_EVENT_KIND_STARTED
	one.TaskId = g.Trigger.ID[:]
	one.Position, one.Version, one.Nonce = uint64(g.Trigger.Position), g.Trigger.Version, g.Nonce
	one.Poll = uint32(g.Poll) + 1
	for _, ref := range g.Path {
		one.Limits = append(one.Limits, string(ref))
	}
}

func (e *encoder) handBack(h *grab.HandBack) {
	one := e.event()
	one.Kind = logv1.EventKind_EVENT_KIND_RELEASED
	one.TaskId = h.ID[:]
	one.Position, one.Version, one.Nonce = uint64(h.Position), h.Version, h.Nonce
	one.Domain, one.Message = h.Domain, handBackReason
}

func (e *encoder) stop(s *grab.Stop) {
	one := e.event()
	one.Kind, one.ReadyByMs = logv1.EventKind_EVENT_KIND_REJECT, s.ReadyBy
	one.Message = "limit " + string(s.Limit) + " is full"
	if s.Displace {
		one.Kind = logv1.EventKind_EVENT_KIND_DISPLACE
		one.Message += ": the oldest attempt makes room for a newer task"
	}
	one.TaskId = s.Trigger.ID[:]
	one.Position, one.Version, one.Domain = uint64(s.Trigger.Position), s.Trigger.Version, s.Domain
}

func (e *encoder) pollRefs(polls []grab.PollRef) {
	if len(polls) > len(e.polls) {
		e.polls = make([]logv1.PollRef, max(16, 2*len(polls)))
	}
	for i, p := range polls {
		one := &e.polls[i]
		one.Domain, one.Worker, one.WorkerId, one.ReplyTo, one.Json = p.Domain, p.Worker, p.WorkerID, p.ReplyTo, p.JSON
		one.MaxTasks, one.BytesMax = int32(p.Max), int64(p.BytesMax)
		e.batch.Polls = append(e.batch.Polls, one)
	}
}
