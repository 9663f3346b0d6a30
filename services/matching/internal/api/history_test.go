package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// grant is one that may not have reached its poll, until it is delivered.
type grant struct {
	partition    int
	epoch, batch uint64
	id           ids.TaskID
	nonce        uint64
	to           *logv1.PollRef
	task         []byte
	at           time.Time
}

// leaseTTL is how long the fake believes in a grant of a fenced epoch that no one
// is known to have received.
const leaseTTL = 3 * time.Second

// task is what the fake history knows of one.
type task struct {
	typ      string
	priority int
	version  uint32 // grants so far
	running  bool
	path     []string
	nonce    uint64
	grants   int
}

// tokens are the fake's; matching does not read them.
var tokens = ids.NewTokens([ids.TokenSecretBytes]byte{})

// history is a fake of history: it grants and releases as the real one does, and
// can be asked to misbehave.
type history struct {
	t  testing.TB
	nc *nats.Conn

	mu      sync.Mutex
	tasks   map[ids.TaskID]*task
	next    uint64
	ready   int64 // the last instant given to ready tasks, Unix µs
	payload []byte
	// batches are the events as they came.
	batches []*logv1.EventBatch
	// fences are by partition.
	fences map[int]uint64
	// grants are those that are not known to be delivered.
	grants []grant
	// mute has verdicts of grants sent to no one.
	mute bool
	// running and most count attempts of each type, now and ever at once.
	running, most map[string]int
	hungry        int
	// onDone receives how many tasks are left, each time one is done.
	onDone      func(left int)
	retriggers  int
	redelivered int
}

func newHistory(t testing.TB, nc *nats.Conn) *history {
	h := &history{
		t: t, nc: nc, tasks: map[ids.TaskID]*task{},
		running: map[string]int{}, most: map[string]int{}, fences: map[int]uint64{}, payload: []byte(`{"a":1}`),
	}
	subscribe := func(_ *nats.Subscription, err error) {
		testkit.NoError(t, err)
	}
	log := slog.New(slog.DiscardHandler)
	for p := range parts.History {
		subscribe(nc.Subscribe(topology.EventRequests(p), func(m *nats.Msg) { h.events(p, m) }))
		subscribe(natsrpc.Serve(nc, topology.HistoryCall(p, "bookings"), nil, log, func(_ context.Context, req *rpcv1.BookingsRequest) (natsrpc.Message, error) {
			return h.bookings(p, req), nil
		}))
		subscribe(natsrpc.Serve(nc, topology.HistoryCall(p, "undelivered"), nil, log, func(_ context.Context, req *rpcv1.UndeliveredRequest) (natsrpc.Message, error) {
			return h.undelivered(p, req), nil
		}))
		subscribe(natsrpc.Serve(nc, topology.HistoryCall(p, "retrigger"), nil, log, func(_ context.Context, _ *rpcv1.RetriggerRequest) (natsrpc.Message, error) {
			return h.retrigger(p), nil
		}))
	}
	subscribe(nc.Subscribe(topology.HintMissingTriggers, func(*nats.Msg) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hungry++
		for p := range parts.History {
			h.trigger(p)
		}
	}))
	testkit.NoError(t, nc.Flush())
	return h
}

func (h *history) events(p int, m *nats.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := new(logv1.EventBatch)
	if err := batch.UnmarshalVT(m.Data); err != nil {
		h.t.Errorf("events: %v", err)
		return
	}
	h.batches = append(h.batches, batch)
	h.grants = slices.DeleteFunc(h.grants, func(g grant) bool {
		return g.partition == p && g.epoch == batch.ShardEpoch && g.batch <= batch.Delivered
	})
	answer := &logv1.VerdictBatch{RequestId: batch.RequestId}
	for i, e := range batch.Events {
		answer.Verdicts = append(answer.Verdicts, h.decide(p, batch, e))
		if i == 2 || answer.SizeVT() > 600<<10 { // the rest in another message, as where payloads are large
			h.answer(batch, answer)
			answer = &logv1.VerdictBatch{RequestId: batch.RequestId, First: uint32(i + 1)}
		}
	}
	if len(answer.Verdicts) > 0 {
		h.answer(batch, answer)
	}
}

func (h *history) answer(batch *logv1.EventBatch, answer *logv1.VerdictBatch) {
	if !h.mute {
		h.publish(batch.ReplyTo, answer)
	}
}

// decide is what the log says to an event: fences first.
func (h *history) decide(p int, b *logv1.EventBatch, e *logv1.Event) *logv1.EventVerdict {
	if e.Kind != logv1.EventKind_EVENT_KIND_RELEASED && b.ShardEpoch < h.fences[p] {
		return &logv1.EventVerdict{Code: string(fault.Stale), Fenced: true}
	}
	if e.Kind == logv1.EventKind_EVENT_KIND_FENCE {
		h.fences[p] = b.ShardEpoch
		return &logv1.EventVerdict{}
	}
	v := h.apply(e)
	if e.Kind == logv1.EventKind_EVENT_KIND_STARTED && v.Code == "" {
		h.grants = append(h.grants, grant{p, b.ShardEpoch, b.RequestId, ids.TaskID(e.TaskId), e.Nonce, b.Polls[e.Poll-1], v.Task, time.Now()})
	}
	return v
}

// expire ends leases of what no one may have received.
func (h *history) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grants = slices.DeleteFunc(h.grants, func(g grant) bool {
		if g.epoch >= h.fences[g.partition] || time.Since(g.at) < leaseTTL {
			return false
		}
		if t := h.tasks[g.id]; t != nil && t.running && t.nonce == g.nonce {
			h.end(g.id, t)
			h.hint(h.groups(g.id), nil)
		}
		return true
	})
}

// undelivered are the grants of epochs before, as far as their attempts run.
func (h *history) undelivered(p int, req *rpcv1.UndeliveredRequest) *rpcv1.UndeliveredResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	resp := &rpcv1.UndeliveredResponse{}
	for _, g := range h.grants {
		if t := h.tasks[g.id]; g.partition == p && g.epoch < req.Epoch && t != nil && t.running && t.nonce == g.nonce {
			resp.Grants = append(resp.Grants, &rpcv1.UndeliveredGrant{
				ReplyTo: g.to.ReplyTo, Json: g.to.Json, MaxTasks: g.to.MaxTasks, Domain: g.to.Domain, Task: g.task, TaskId: g.id[:], Version: t.version, Nonce: g.nonce,
			})
			h.redelivered++
		}
	}
	return resp
}

func (h *history) apply(e *logv1.Event) *logv1.EventVerdict {
	t := h.tasks[ids.TaskID(e.TaskId)]
	if t == nil {
		return &logv1.EventVerdict{Code: string(fault.NotFound)}
	}
	switch e.Kind {
	case logv1.EventKind_EVENT_KIND_STARTED:
		again := t.running && t.version == e.Version && t.nonce == e.Nonce
		if !again && (t.running || e.Version != t.version+1) {
			return &logv1.EventVerdict{Code: string(fault.Stale)}
		}
		if !again {
			t.version, t.running, t.path, t.nonce = e.Version, true, e.Limits, e.Nonce
			t.grants++
			h.running[t.typ]++
			h.most[t.typ] = max(h.most[t.typ], h.running[t.typ])
		}
		polled, err := (&yardv1.PolledTask{
			TaskId: ids.TaskID(e.TaskId).String(), Type: t.typ, Tasklist: tasklist, Priority: int32(t.priority),
			Token:   tokens.Print(ids.TaskID(e.TaskId), ids.Token{Position: ids.Position(e.Position), Version: e.Version, Nonce: e.Nonce}),
			Payload: &yardv1.Payload{Data: h.payload},
		}).MarshalVT()
		testkit.Check(h.t, err)
		return &logv1.EventVerdict{Task: polled, DeadlineMs: time.Now().Add(time.Minute).UnixMilli()}
	case logv1.EventKind_EVENT_KIND_RELEASED:
		if t.running && t.version == e.Version && t.nonce == e.Nonce {
			h.end(ids.TaskID(e.TaskId), t)
			h.hint(h.groups(ids.TaskID(e.TaskId)), nil)
		}
	}
	return &logv1.EventVerdict{}
}

// end ends the running attempt and frees its slot.
func (h *history) end(id ids.TaskID, t *task) {
	t.running = false
	h.running[t.typ]--
	if len(t.path) > 0 {
		h.hint(nil, []*logv1.SlotRelease{{Domain: domain, Type: t.typ, Bookings: []byte(ids.Booking(id, t.version)), Limits: t.path}})
	}
}

// submit makes n ready tasks and returns their ids; without hint where lost is set.
func (h *history) submit(typ string, priority, n int) []ids.TaskID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var made []ids.TaskID
	for range n {
		h.next++
		id := ids.NewTaskID(time.Now(), int(h.next)%parts.History, h.next)
		h.tasks[id] = &task{typ: typ, priority: priority}
		made = append(made, id)
	}
	h.hint(h.groups(made...), nil)
	return made
}

// complete ends the attempts of polled tasks for good.
func (h *history) complete(tasks []*yardv1.PolledTask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range tasks {
		id, err := ids.ParseTaskID(p.TaskId)
		token, err2 := tokens.Read(id, p.Token)
		t := h.tasks[id]
		if err != nil || err2 != nil || t == nil || !t.running || t.nonce != token.Nonce || t.version != token.Version {
			h.t.Errorf("a task was polled whose attempt is not the current one: %v %+v", p, t)
			continue
		}
		h.end(id, t)
		delete(h.tasks, id)
		if h.onDone != nil {
			h.onDone(len(h.tasks))
		}
	}
}

func (h *history) groups(all ...ids.TaskID) []*logv1.TriggerBatch {
	var groups []*logv1.TriggerBatch
	for _, id := range all {
		t := h.tasks[id]
		trigger := ids.Trigger{ID: id, Version: t.version + 1, Position: ids.NewPosition(1, ids.LaneFirst)}
		i := slices.IndexFunc(groups, func(g *logv1.TriggerBatch) bool { return g.Type == t.typ && int(g.Priority) == t.priority })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &logv1.TriggerBatch{
				Domain: domain, Tasklist: tasklist, Priority: int32(t.priority), Type: t.typ, ReadyAtUs: h.readyAt(),
			})
		}
		groups[i].Triggers = ids.AppendTrigger(groups[i].Triggers, trigger)
	}
	return groups
}

// readyAt is now, but never the same instant twice: two groups that are ready in one
// microsecond have no order that a test could check (R70).
func (h *history) readyAt() int64 {
	h.ready = max(h.ready+1, time.Now().UnixMicro())
	return h.ready
}

func (h *history) hint(groups []*logv1.TriggerBatch, releases []*logv1.SlotRelease) {
	h.publish(topology.Matching(0), &logv1.Hints{Triggers: groups, Releases: releases})
}

func (h *history) publish(subject string, m interface{ MarshalVT() ([]byte, error) }) {
	data, err := m.MarshalVT()
	if err == nil {
		err = h.nc.Publish(subject, data)
	}
	testkit.Check(h.t, err)
}

func (h *history) bookings(p int, req *rpcv1.BookingsRequest) *rpcv1.BookingsResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	resp := &rpcv1.BookingsResponse{}
	for id, t := range h.tasks {
		if t.running && id.Partition() == p && (len(t.path) > 0 || slices.Contains(req.Types, t.typ)) {
			resp.Groups = append(resp.Groups, &rpcv1.Bookings{
				Domain: domain, Type: t.typ, Limits: t.path, Bookings: []byte(ids.Booking(id, t.version)), DeadlineMs: time.Now().Add(time.Minute).UnixMilli(),
			})
		}
	}
	return resp
}

func (h *history) retrigger(p int) *rpcv1.RetriggerResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retriggers++
	return &rpcv1.RetriggerResponse{Triggers: int64(h.trigger(p))}
}

// trigger sends the triggers of everything ready again.
func (h *history) trigger(p int) int {
	var ready []ids.TaskID
	for id, t := range h.tasks {
		if !t.running && id.Partition() == p {
			ready = append(ready, id)
		}
	}
	if len(ready) > 0 {
		h.hint(h.groups(ready...), nil)
	}
	return len(ready)
}

// left tells of the tasks that are not done.
func (h *history) left() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for id, t := range h.tasks {
		fmt.Fprintf(&b, "%s %+v; ", id, *t)
	}
	return b.String()
}

// count reads one of the fake's numbers.
func (h *history) count(f func() int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return f()
}
