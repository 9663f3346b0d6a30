package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

const (
	// pollGroup has a poll go to one of two owners that overlap: two answers to one
	// poll would grant tasks that nobody reads.
	pollGroup = "matching"
	// stopTimeout bounds the end of what lets work in.
	stopTimeout = time.Second
)

// Serve connects the shard to NATS and runs it until ctx ends. When it returns, no
// call to the shard is made any more. Its error is why NATS refused to subscribe.
func (p *Port) Serve(ctx context.Context, s *shard.Shard) error {
	var in, out subscriptions
	defer func() { out.end(p.nc) }()
	out.add(p.nc.Subscribe(p.VerdictsTo(), func(m *nats.Msg) { p.verdicts(s, m) }))
	out.add(p.nc.Subscribe(p.inbox+".a.*", func(m *nats.Msg) { p.unheard(s, m) }))
	out.add(p.nc.Subscribe(topology.HintFreed, func(m *nats.Msg) { p.freed(s, m) }))
	in.add(p.nc.QueueSubscribe(topology.MatchingCall(p.shard, "poll"), pollGroup, func(m *nats.Msg) { p.poll(s, m) }))
	in.add(natsrpc.Serve(p.nc, topology.MatchingCall(p.shard, "describe"), p.log,
		func(ctx context.Context, req *rpcv1.DescribeShardRequest) (natsrpc.Message, error) {
			resp, err := s.Describe(ctx, req)
			if err != nil {
				return nil, fault.New(fault.Unavailable, "describe a shard: %v", err)
			}
			return resp, nil
		}))
	if err := errors.Join(in.err, out.err); err != nil {
		in.end(p.nc)
		return fmt.Errorf("subscribe for matching shard %d: %w", p.shard, err)
	}
	intake, stopIntake := context.WithCancel(ctx)
	defer stopIntake()
	stopped := make(chan struct{})
	running, stopRunning := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRunning()
	go func() { // what lets work in ends first, then the shard, then what it waits for
		defer close(stopped)
		p.consume(intake, s)
		in.end(p.nc)
		stopRunning()
	}()
	err := s.Run(running)
	stopIntake()
	<-stopped
	return err
}

func (p *Port) verdicts(s *shard.Shard, m *nats.Msg) {
	v, err := readVerdicts(m.Data)
	if err != nil {
		p.log.Error("an unreadable verdict was dropped", "bytes", len(m.Data), "error", err)
		return
	}
	s.Verdicts(v)
}

// unheard reads the server's word that an answer found nobody.
func (p *Port) unheard(s *shard.Shard, m *nats.Msg) {
	if m.Header.Get("Status") != "503" {
		return // somebody replied to an answer, which means nothing
	}
	if id, err := answerID(m.Subject); err == nil {
		s.Unheard(id)
	}
}

func (p *Port) freed(s *shard.Shard, m *nats.Msg) {
	f := new(rpcv1.Freed)
	if err := f.UnmarshalVT(m.Data); err != nil {
		p.log.Error("an unreadable hint was dropped", "subject", m.Subject, "error", err)
		return
	}
	s.Freed(f)
}

func (p *Port) poll(s *shard.Shard, m *nats.Msg) {
	req := new(rpcv1.Poll)
	if err := req.UnmarshalVT(m.Data); err != nil || req.ReplyTo == "" {
		p.log.Error("an unreadable poll was dropped", "bytes", len(m.Data), "error", err)
		p.told("refuse a poll", natsrpc.RespondError(p.nc, m.Reply, fault.New(fault.Internal, "the poll is unreadable")))
		return
	}
	s.Poll(req)
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
