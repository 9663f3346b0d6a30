package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// stopTimeout bounds the end of what lets work in.
const stopTimeout = time.Second

// Serve connects the shard to NATS and runs it until ctx ends, or a newer owner is there:
// then it returns shard.ErrOvertaken, and polls that wait are left to that owner. When it
// returns, no call to the shard is made any more. Other errors say why NATS refused to
// subscribe.
func (p *Port) Serve(ctx context.Context, s *shard.Shard) error {
	var in, out subscriptions
	defer func() { out.end(p.NATS) }()
	out.add(p.NATS.Subscribe(p.inbox+".v.*", func(m *nats.Msg) { p.verdicts(s, m) }))
	out.add(p.NATS.Subscribe(p.inbox+".a.*", func(m *nats.Msg) { p.bounced(s, m) }))
	out.add(p.NATS.Subscribe(p.inbox+".m.*", func(m *nats.Msg) { p.unmoved(s, m) }))
	out.add(hear(p, s, topology.HintFreed, func(in *match.Inputs, m *rpcv1.Freed) {
		in.Freed = append(in.Freed, match.LimitHint{Domain: m.Domain, Limits: as[table.Ref](m.Limits)})
	}))
	out.add(hear(p, s, topology.HintRestore, func(in *match.Inputs, m *rpcv1.Restore) {
		in.Restore = append(in.Restore, match.LimitHint{Domain: m.Domain, Limits: as[table.Ref](m.Limits)})
	}))
	out.add(hear(p, s, topology.HintSilent, func(in *match.Inputs, m *rpcv1.Silent) {
		for _, w := range m.Workers {
			in.Silent = append(in.Silent, waiting.SilentWorker{Domain: w.Domain, ID: w.WorkerId})
		}
	}))
	out.add(hear(p, s, topology.HintGivenUp, func(in *match.Inputs, m *rpcv1.GivenUp) {
		in.GivenUp = append(in.GivenUp, waiting.GivenUp{Domain: m.Domain, Inboxes: m.Inboxes})
	}))
	in.add(hear(p, s, topology.HintBranch(p.Shard), branches))
	in.add(p.NATS.Subscribe(topology.MatchingPoll(p.Shard, p.Epoch), func(m *nats.Msg) { p.poll(s, m) }))
	in.add(natsrpc.Serve(p.NATS, topology.MatchingCall(p.Shard, "describe"), p.Replies, p.Log,
		func(ctx context.Context, req *rpcv1.DescribeShardRequest) (natsrpc.Message, error) {
			resp, err := s.Describe(ctx, req)
			if err != nil {
				return nil, fault.New(fault.Unavailable, "describe a shard: %v", err)
			}
			return resp, nil
		}))
	if err := errors.Join(in.err, out.err); err != nil {
		in.end(p.NATS)
		return fmt.Errorf("subscribe for matching shard %d: %w", p.Shard, err)
	}
	defer p.answered.flush()
	intake, stopIntake := context.WithCancel(ctx)
	defer stopIntake()
	stopped := make(chan struct{})
	running, stopRunning := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRunning()
	go func() { // what lets work in ends first, then the shard, then what it waits for
		defer close(stopped)
		p.consume(intake, s)
		in.end(p.NATS)
		stopRunning()
	}()
	err := s.Run(running)
	stopIntake()
	<-stopped
	return err
}

func (p *Port) verdicts(s *shard.Shard, m *nats.Msg) {
	v, err := readVerdicts(m.Data)
	if err == nil {
		v.Partition, err = strconv.Atoi(lastToken(m.Subject))
	}
	if err != nil || v.Partition >= p.Partitioning.History {
		p.Log.Error("an unreadable verdict was dropped", "subject", m.Subject, "bytes", len(m.Data), "error", err)
		return
	}
	s.Put(func(in *match.Inputs) { in.Verdicts = append(in.Verdicts, v) })
}

// undelivered is the number of a message, if this is the server's report that it had no subscriber. Any other reply means nothing.
func undelivered(m *nats.Msg) (number uint64, ok bool) {
	number, err := strconv.ParseUint(lastToken(m.Subject), 36, 64)
	return number, err == nil && m.Header.Get("Status") == "503"
}

// bounced reads the server's report that an answer had no subscriber.
func (p *Port) bounced(s *shard.Shard, m *nats.Msg) {
	if id, ok := undelivered(m); ok {
		s.Put(func(in *match.Inputs) { in.Bounced = append(in.Bounced, id) })
	}
}

// hear has a shard hear what a subject tells; put reads it into the shard's inputs.
func hear[M any, PM interface {
	*M
	UnmarshalVT([]byte) error
}](p *Port, s *shard.Shard, subject string, put func(in *match.Inputs, m PM)) (*nats.Subscription, error) {
	return p.NATS.Subscribe(subject, func(msg *nats.Msg) {
		m := PM(new(M))
		if err := m.UnmarshalVT(msg.Data); err != nil {
			p.Log.Error("an unreadable hint was dropped", "subject", msg.Subject, "bytes", len(msg.Data), "error", err)
			return
		}
		s.Put(func(in *match.Inputs) { put(in, m) })
	})
}

func (p *Port) poll(s *shard.Shard, m *nats.Msg) {
	req := new(rpcv1.Poll)
	if err := req.UnmarshalVT(m.Data); err != nil || req.ReplyTo == "" {
		p.Log.Error("an unreadable poll was dropped", "bytes", len(m.Data), "error", err)
		if p.Replies.Service(m.Reply) {
			p.refuse(m.Reply, fault.New(fault.Internal, "the poll is unreadable"))
		}
		return
	}
	// Before anything is granted: the frontend has checked it, but a client that reaches this
	// subject could be another.
	if !p.Replies.Asker(req.Domain, req.ReplyTo) || req.AnsweredTo != "" && !p.Replies.Service(req.AnsweredTo) {
		return
	}
	poll := waiting.Poll{
		ID:     p.answered.expect(req),
		Domain: req.Domain, Tasklist: req.Tasklist, Partition: int(req.TasklistPartition), Moved: req.Moved, Back: req.Back, Max: int(req.MaxTasks), Types: req.Types,
		Worker: req.Worker, WorkerID: req.WorkerId, Version: req.WorkerVersion, ReplyTo: req.ReplyTo, JSON: req.Json, For: time.Duration(req.WaitMs) * time.Millisecond,
	}
	s.Put(func(in *match.Inputs) { in.Polls = append(in.Polls, poll) })
}

// subscriptions are ended together.
type subscriptions struct {
	all []*nats.Subscription
	err error
}

func (s *subscriptions) add(sub *nats.Subscription, err error) {
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	s.all = append(s.all, sub)
}

// end stops what comes in and waits, for a bounded time, until what came in already
// has been handled.
func (s *subscriptions) end(nc *nats.Conn) {
	deadline := time.NewTimer(stopTimeout)
	defer deadline.Stop()
	for _, sub := range s.all {
		closed := make(chan struct{})
		sub.SetClosedHandler(func(string) { close(closed) })
		if sub.Drain() != nil || !nc.IsConnected() {
			_ = sub.Unsubscribe() // it is gone with the connection
			continue
		}
		select {
		case <-closed:
		case <-deadline.C:
			return
		}
	}
	s.all = nil
}
