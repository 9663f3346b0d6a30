package yard

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

const (
	// codeOK is the code of a good verdict.
	codeOK = "OK"
	// statusNoResponders is the status header of a request that no worker received.
	statusNoResponders = "503"
	headerStatus       = "Status"
	// pollGrace is how long after its wait a poll's answer may come.
	pollGrace = 3 * time.Second
	// outcomeTry bounds one try of a worker's outcome, or of an update. Repeats are harmless, and the
	// process that took it may be dead: better ask another one than let the attempt's
	// deadline pass.
	outcomeTry = 4 * time.Second
	// lateAnswerWait bounds the round trip that ends a poll early.
	lateAnswerWait = 2 * time.Second
)

// poll is Wire.Poll.
func (c *Client) poll(ctx context.Context, req *yardv1.PollRequest) (*yardv1.PollResponse, error) {
	if err := ids.CheckName(req.Tasklist); err != nil { // it becomes part of a subject
		return nil, fault.At(fault.InvalidArgument, "/tasklist", "%v", err)
	}
	unanswered := c.givenUp.Names(req.Tasklist)
	if len(unanswered) > 0 {
		req = req.CloneVT()
		req.Unanswered = unanswered
	}
	data, err := req.MarshalVT()
	if err != nil {
		return nil, fault.New(fault.Internal, "encode a poll: %v", err)
	}
	broken := c.nc.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer c.nc.RemoveStatusListener(broken)
	if !c.nc.IsConnected() {
		return nil, notSent(ctx, c.nc)
	}
	// A subscription of its own, since only one that goes away tells the engine
	// that no one waits any more; the connection's shared inbox never does.
	answers := make(chan *nats.Msg, 4)
	inbox := c.nc.NewInbox()
	sub, err := c.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "subscribe for a poll: %v", err)
	}
	msg := &nats.Msg{Subject: topology.PollOf(c.domain, req.Tasklist), Reply: inbox, Data: data, Header: nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}}}
	if err := c.nc.PublishMsg(msg); err != nil {
		return c.withdraw(sub, answers, fault.New(fault.Unavailable, "send a poll: %v", err))
	}
	limit := time.NewTimer(time.Duration(req.WaitMs)*time.Millisecond + pollGrace)
	defer limit.Stop()
	select {
	case answer := <-answers:
		if err := sub.Unsubscribe(); err != nil && c.nc.IsClosed() {
			return nil, notSent(ctx, c.nc)
		}
		resp, err := polled(&c.transport, answer)
		if err == nil {
			c.givenUp.Answered(req.Tasklist, unanswered)
		}
		return resp, err
	case <-ctx.Done():
		return c.withdraw(sub, answers, ended(ctx, fault.New(fault.Unavailable, "the poll was given up")))
	case <-limit.C:
		return c.giveUp(req.Tasklist, sub, answers, fault.New(fault.Unavailable, "the poll was not answered"))
	case <-broken:
		return c.giveUp(req.Tasklist, sub, answers, fault.New(fault.Unavailable, "%v", errConnectionBroke))
	}
}

// giveUp ends a poll whose answer may be lost. If none is here, the next poll says so.
func (c *Client) giveUp(tasklist string, sub *nats.Subscription, answers <-chan *nats.Msg, why error) (*yardv1.PollResponse, error) {
	resp, err := c.withdraw(sub, answers, why)
	if resp == nil {
		c.givenUp.Add(tasklist, sub.Subject)
	}
	return resp, err
}

// withdraw ends a poll that was not answered yet. The server is done with the
// subscription when it answers the flush, so an answer is either here by then or
// will find no responders. It returns why where there is none, or none with tasks.
func (c *Client) withdraw(sub *nats.Subscription, answers <-chan *nats.Msg, why error) (*yardv1.PollResponse, error) {
	if !c.nc.IsConnected() {
		// Not a drain: the connection would make the subscription again, and forget it without telling the server, which would take an answer for delivered.
		_ = sub.Unsubscribe() // it fails only if the connection is closed
	} else if err := sub.Drain(); err == nil {
		// A fresh context: that of the caller may have ended, which is why we are here.
		ctx, cancel := context.WithTimeout(context.Background(), lateAnswerWait)
		defer cancel()
		if err := c.nc.FlushWithContext(ctx); err != nil {
			why = fault.New(fault.Unavailable, "%v; the poll was not withdrawn: %v", why, err)
		}
	}
	select {
	case answer := <-answers:
		if resp, err := polled(&c.transport, answer); err == nil && len(resp.Tasks) > 0 {
			return resp, nil
		}
	default:
	}
	return nil, why
}

// polled reads the answer of a poll.
func polled(t *transport, answer *nats.Msg) (*yardv1.PollResponse, error) {
	if len(answer.Data) == 0 && answer.Header.Get(headerStatus) == statusNoResponders {
		return nil, fault.New(fault.Unavailable, "no node serves polls now")
	}
	var resp yardv1.PollResponse
	if err := t.decode(answer, &resp); err != nil {
		return nil, err
	}
	return &resp, nil
}

// outcome sends a request that is answered by n verdicts.
func (c *Client) outcome(ctx context.Context, endpoint string, req codec.Message, n int) ([]*yardv1.Verdict, error) {
	resp, err := call[yardv1.OutcomeResponse](ctx, &c.transport, c.subject(endpoint), req)
	return verdicts(resp, err, n)
}

// outcomeOnce is outcome without repeats.
func (c *Client) outcomeOnce(ctx context.Context, endpoint string, req codec.Message, n int) ([]*yardv1.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, outcomeTry)
	defer cancel()
	resp, err := callOnce[yardv1.OutcomeResponse](ctx, &c.transport, c.subject(endpoint), req)
	return verdicts(resp, err, n)
}

// cancels implements engine. Without the right to subscribe a worker hears of cancels by its heartbeats.
func (c *Client) cancels(heard func(taskIDs []string)) (stop func()) {
	sub, err := c.nc.Subscribe(topology.CancelHint(c.domain), func(msg *nats.Msg) {
		var hint yardv1.CancelHint
		if codec.Unmarshal(codec.JSON, msg.Data, &hint) == nil {
			heard(hint.TaskIds)
		}
	})
	if err != nil {
		return func() {} // the connection is closed
	}
	return func() { _ = sub.Unsubscribe() }
}

func (c *Client) connClosed() bool { return c.nc.IsClosed() }

// verdicts checks that there is one for each of n entries.
func verdicts(resp *yardv1.OutcomeResponse, err error, n int) ([]*yardv1.Verdict, error) {
	if err != nil {
		return nil, err
	}
	if len(resp.Verdicts) != n {
		return nil, fault.New(fault.Internal, "%d verdicts were answered for %d entries", len(resp.Verdicts), n)
	}
	return resp.Verdicts, nil
}
