package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// neighbours runs W10: the tasks of W3 and gets of one domain, alone and beside another domain
// that holds waits open and polls without end.
func (l *load) neighbours(ctx context.Context) (report.Result, error) {
	filled := &load{target: l.target, tasks: min(l.tasks, w10Filled), brief: true}
	if _, err := filled.drain(ctx, bulk); err != nil {
		return report.Result{}, fmt.Errorf("fill: %w", err)
	}
	quiet, quietGets, err := l.besideGets(ctx, filled)
	if err != nil {
		return report.Result{}, fmt.Errorf("alone: %w", err)
	}
	f, err := l.openFlood(ctx)
	if err != nil {
		return report.Result{}, fmt.Errorf("flood: %w", err)
	}
	polling := make(chan error, 1)
	go func() { polling <- f.poll(ctx, l.tasks*w10PollsPerTask) }()
	loud, loudGets, err := l.besideGets(ctx, filled)
	err = errors.Join(err, <-polling)
	if err == nil {
		err = f.end(ctx)
	}
	if err != nil {
		return report.Result{}, fmt.Errorf("beside the flood: %w", err)
	}
	n := &report.Neighbours{
		Waits: w10Waits, Polls: l.tasks * w10PollsPerTask, PollsRefused: int(f.refused.Load()),
		QuietGet: report.QuantilesOf(quietGets.took), Get: report.QuantilesOf(loudGets.took),
		QuietSubmit: *quiet.Submit, QuietStart: *quiet.Start,
	}
	n.GetRatio, n.SubmitRatio = n.Get.P99/n.QuietGet.P99, loud.Submit.P99/n.QuietSubmit.P99
	loud.Neighbours = n
	return loud, nil
}

// besideGets runs one phase: tasks as in W3, and as many gets, of the filled ones.
func (l *load) besideGets(ctx context.Context, filled *load) (report.Result, *gets, error) {
	gets, err := filled.newGets(l.tasks, w10Rate)
	if err != nil {
		return report.Result{}, nil, err
	}
	r, err := (&load{target: l.target, tasks: l.tasks}).beside(ctx, w10Rate, gets.run)
	return r, gets, err
}

// flood is the neighbour. It writes to NATS itself: a goroutine per request would be a load of
// its own.
type flood struct {
	nc     *nats.Conn
	client *yard.Client
	slower int
	held   string // the task whose end is waited for

	ended   atomic.Int64 // waits that were answered
	refused atomic.Int64 // polls that were refused
	failed  atomic.Pointer[fault.Error]
}

// openFlood makes the neighbour's domain, and opens its waits.
func (l *load) openFlood(ctx context.Context) (*flood, error) {
	nc, err := l.target.connect()
	if err != nil {
		return nil, err
	}
	f := &flood{nc: nc, slower: l.target.slower}
	if f.client, err = yard.NewClient(nc, floodDomain, yard.WithTimeout(stallAfter)); err != nil {
		return nil, err
	}
	if err := l.target.domains(ctx, []string{floodDomain}, topology.RetentionMin); err != nil {
		return nil, err
	}
	if f.held, err = f.client.Submit(ctx, yard.Task{Type: "held", Tasklist: "held"}); err != nil {
		return nil, err
	}
	inbox, err := f.answers(func(e *fault.Error) {
		if f.ended.Add(1); e != nil {
			f.failed.CompareAndSwap(nil, e)
		}
	})
	if err != nil {
		return nil, err
	}
	wait, err := codec.Marshal(codec.Protobuf, &yardv1.GetRequest{TaskId: f.held, WaitMs: w10Wait.Milliseconds()})
	if err != nil {
		return nil, err
	}
	for range w10Waits {
		if err := f.send("tasks.get", inbox, wait); err != nil {
			return nil, err
		}
	}
	return f, f.err()
}

// answers subscribes to an inbox, and hands on whether each answer is an error.
func (f *flood) answers(take func(e *fault.Error)) (inbox string, err error) {
	inbox = f.nc.NewInbox()
	sub, err := f.nc.Subscribe(inbox, func(m *nats.Msg) {
		take(fault.Decode(m.Header.Get(fault.HeaderCode), m.Header.Get(fault.HeaderDescription), m.Data))
	})
	if err != nil {
		return "", err
	}
	return inbox, sub.SetPendingLimits(-1, -1)
}

func (f *flood) send(endpoint, inbox string, body []byte) error {
	return f.nc.PublishMsg(&nats.Msg{
		Subject: topology.API(floodDomain, endpoint), Reply: inbox, Data: body,
		Header: nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}},
	})
}

// poll sends so many polls, some every few milliseconds, to tasklists that are empty.
func (f *flood) poll(ctx context.Context, polls int) error {
	inbox, err := f.answers(func(e *fault.Error) {
		switch {
		case e == nil:
		case e.Code == fault.ResourceExhausted:
			f.refused.Add(1)
		default:
			f.failed.CompareAndSwap(nil, e)
		}
	})
	if err != nil {
		return err
	}
	var bodies [w10Tasklists][]byte
	for i := range bodies {
		req := &yardv1.PollRequest{Tasklist: fmt.Sprint("empty-", i), MaxTasks: pollTasks, WaitMs: w10PollWait.Milliseconds(), Worker: "flood"}
		if bodies[i], err = codec.Marshal(codec.Protobuf, req); err != nil {
			return err
		}
	}
	began := time.Now()
	for sent := 0; sent < polls; {
		if !sleepUntil(ctx, time.Now().Add(w10PollsEvery)) {
			return ctx.Err()
		}
		for due := int(time.Since(began)*w10Rate*w10PollsPerTask/time.Second) / f.slower; sent < min(due, polls); sent++ {
			if err := f.send("tasks.poll", inbox, bodies[sent%len(bodies)]); err != nil {
				return err
			}
		}
	}
	return f.err()
}

// end has the task end that is waited for. Every wait must have been open until then, or
// there was no flood.
func (f *flood) end(ctx context.Context) error {
	if n := f.ended.Load(); n > 0 {
		return errors.Join(fmt.Errorf("%d of %d waits ended early", n, w10Waits), f.err())
	}
	if err := f.client.Cancel(ctx, f.held); err != nil {
		return err
	}
	err := waitFor(ctx, stallAfter, 10*time.Millisecond, func() (bool, string, error) {
		n := f.ended.Load()
		return n >= w10Waits, fmt.Sprintf("%d of %d waits heard of the end of their task", n, w10Waits), nil
	})
	return cmp.Or(err, f.err())
}

func (f *flood) err() error {
	if e := f.failed.Load(); e != nil {
		return e
	}
	return nil
}
