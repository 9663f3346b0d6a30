package api_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// serve answers calls to history partition 1.
func serve[Req any, PReq interface {
	*Req
	natsrpc.Message
}](t *testing.T, l *line, verb string, handle func(req PReq) (natsrpc.Message, error)) {
	t.Helper()
	nc := l.server.Connect(t)
	_, err := natsrpc.Serve(nc, topology.HistoryCall(1, verb), nil, testLog(), func(_ context.Context, req PReq) (natsrpc.Message, error) {
		return handle(req)
	})
	if err == nil {
		err = nc.Flush()
	}
	testkit.NoError(t, err)
}

// TestR39_AnswersAreReadPageByPage to the last one.
func TestR39_AnswersAreReadPageByPage(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	p := l.port(5)
	member := func(i int) string { return ids.Booking(ids.TaskID{byte(i)}, 1) }
	serve(t, l, "bookings", func(req *rpcv1.BookingsRequest) (natsrpc.Message, error) {
		if req.Shard != 0 || req.Domain != "d" || !slices.Equal(req.Types, []string{"a"}) {
			return nil, fault.New(fault.InvalidArgument, "asked for %v", req)
		}
		i := len(req.Cursor)
		resp := &rpcv1.BookingsResponse{Groups: []*rpcv1.Bookings{
			{Domain: "d", Type: "a", Limits: []string{"type/a"}, Bookings: []byte(member(2*i) + member(2*i+1)), DeadlineMs: int64(i)},
		}}
		if i < 3 {
			resp.Cursor = make([]byte, i+1)
		} else {
			resp.Groups[0].Limits = nil
		}
		return resp, nil
	})
	got, err := p.Ask(t.Context(), question.Question{Kind: question.Running, Partition: 1, Domain: "d", Types: []string{"a"}})
	if err != nil || len(got.Running) != 8 {
		t.Fatalf("%v %v", got, err)
	}
	for i, h := range got.Running {
		path := []table.Ref{"type/a"}
		if i >= 6 {
			path = nil
		}
		if h.Domain != "d" || h.Type != "a" || !slices.Equal(h.Path, path) || h.Member != member(i) || h.DeadlineMS != int64(i/2) {
			t.Errorf("%d is %v", i, h)
		}
	}
	serve(t, l, "undelivered", func(req *rpcv1.UndeliveredRequest) (natsrpc.Message, error) {
		if req.Epoch != 5 {
			return nil, fault.New(fault.InvalidArgument, "asked for %v", req)
		}
		resp := &rpcv1.UndeliveredResponse{Grants: []*rpcv1.UndeliveredGrant{{ReplyTo: fmt.Sprint("_INBOX.r", len(req.Cursor)), Json: true, Task: []byte("t"), TaskId: make([]byte, 16), Domain: "d", MaxTasks: 3, Position: 4, Version: 5, Nonce: 6}}}
		if len(req.Cursor) == 0 {
			resp.Cursor = []byte("x")
		}
		return resp, nil
	})
	got, err = p.Ask(t.Context(), question.Question{Kind: question.Undelivered, Partition: 1})
	testkit.NoError(t, err)
	testkit.MustEqual(t, "grants", len(got.Undelivered), 2)
	testkit.Equal(t, "the second one", fmt.Sprintf("%+v", got.Undelivered[1]), fmt.Sprintf("%+v", grab.Undelivered{
		Domain: "d", ReplyTo: "_INBOX.r1", JSON: true, Max: 3, Trigger: ids.Trigger{Version: 5, Position: 4}, Nonce: 6, Task: []byte("t"),
	}))
}

// Answers that cannot be, and partitions that no node serves, are errors.
func TestAnswersThatCannotBeAreErrors(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	p := l.port(5)
	if _, err := p.Ask(t.Context(), question.Question{Kind: question.Retrigger, Partition: 1}); fault.From(err).Code != fault.Unavailable {
		t.Errorf("no node serves it: %v", err)
	}
	serve(t, l, "bookings", func(*rpcv1.BookingsRequest) (natsrpc.Message, error) {
		return &rpcv1.BookingsResponse{Groups: []*rpcv1.Bookings{{Bookings: []byte("short")}}}, nil
	})
	if _, err := p.Ask(t.Context(), question.Question{Kind: question.Bookings, Partition: 1}); err == nil {
		t.Error("half a booking was read")
	}
	serve(t, l, "undelivered", func(*rpcv1.UndeliveredRequest) (natsrpc.Message, error) {
		return &rpcv1.UndeliveredResponse{Cursor: []byte("again")}, nil
	})
	if _, err := p.Ask(t.Context(), question.Question{Kind: question.Undelivered, Partition: 1}); err == nil {
		t.Error("the same page was asked for without end")
	}
	if _, err := p.Ask(t.Context(), question.Question{Partition: 1}); err == nil {
		t.Error("no question was answered")
	}
	asked := make(chan *rpcv1.RetriggerRequest, 1)
	serve(t, l, "retrigger", func(req *rpcv1.RetriggerRequest) (natsrpc.Message, error) {
		asked <- req
		return &rpcv1.RetriggerResponse{}, nil
	})
	testkit.Eventually(t, patience, func() error {
		_, err := p.Ask(t.Context(), question.Question{Kind: question.Retrigger, Partition: 1, Domain: "d"})
		return err
	})
	if req := <-asked; req.Domain != "d" || req.Shard != 0 {
		t.Errorf("asked for %v", req)
	}
}

// TestHoldersAreAskedOfHistory: all that a question says reaches it, and all that it answers comes back. An answer about other limits is none.
func TestHoldersAreAskedOfHistory(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	p := l.port(5)
	id, odd := ids.TaskID{7}, false
	serve(t, l, "bookings", func(req *rpcv1.BookingsRequest) (natsrpc.Message, error) {
		if q := req.Holders[0]; req.Domain != "d" || q.Limit != "type/a" || q.Most != 9 || !slices.Equal(q.Types, []string{"a", "b"}) || q.Group != "g" || q.ReadyByMs != 77 {
			return nil, fault.New(fault.InvalidArgument, "asked for %v", req)
		}
		one := &rpcv1.LimitHolders{Leaving: 3, Waiting: 4, Oldest: []*rpcv1.SlotAttempt{{TaskId: id[:], Position: 5, Version: 6, StartedAtMs: 8}}}
		if odd {
			one.Oldest[0].TaskId = id[:3]
		}
		return &rpcv1.BookingsResponse{Holders: []*rpcv1.LimitHolders{one}}, nil
	})
	q := overflow.Query{Ref: "type/a", Most: 9, Types: []string{"a", "b"}, Group: "g", ReadyBy: 77}
	a := question.Question{Kind: question.Holders, Partition: 1, Domain: "d", Holders: []overflow.Query{q}}
	got, err := p.Ask(t.Context(), a)
	if err != nil || len(got.Holders) != 1 {
		t.Fatalf("%v %v", got, err)
	}
	want := overflow.OldHolder{Trigger: ids.Trigger{ID: id, Version: 6, Position: 5}, StartedAtMS: 8}
	if h := got.Holders[0]; h.Leaving != 3 || h.Waiting != 4 || !slices.Equal(h.Oldest, []overflow.OldHolder{want}) {
		t.Errorf("%+v", h)
	}
	odd = true
	if _, err := p.Ask(t.Context(), a); err == nil {
		t.Error("an attempt of no task was taken")
	}
	odd, a.Holders = false, append(a.Holders, q)
	if _, err := p.Ask(t.Context(), a); err == nil {
		t.Error("an answer about one of two limits was taken")
	}
}
