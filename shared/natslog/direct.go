package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// Headers and status codes of direct gets (ADR-31 of NATS).
const (
	headerSubject    = "Nats-Subject"
	headerSequence   = "Nats-Sequence"
	headerTimestamp  = "Nats-Time-Stamp"
	headerNumPending = "Nats-Num-Pending"

	statusEndOfBatch   = "204"
	statusNoResponders = "503"
)

// Answer is what one Query found, in order.
type Answer struct {
	Records []Record
	// More tells that a batch ended before the matching messages did, Pending how many of them lie behind it.
	More    bool
	Pending uint64
}

// Direct reads messages without a consumer, many at a time. Any replica may answer,
// and one that lags does not have the latest messages. It is safe for concurrent use.
type Direct struct {
	js    jetstream.JetStream
	inbox string
	sub   *nats.Subscription

	mu   sync.Mutex
	last uint64
	open map[string]*exchange
}

// exchange is one query under way.
type exchange struct {
	answer Answer
	batch  bool
	bare   uint64      // the sequence of a bare message; 0 = it is not bare
	done   func(error) // called once
}

// NewDirect makes a reader of direct gets. The caller closes the connection.
func NewDirect(js jetstream.JetStream) (*Direct, error) {
	d := &Direct{js: js, inbox: js.Conn().NewInbox(), open: map[string]*exchange{}}
	sub, err := js.Conn().Subscribe(d.inbox+".*", d.receive)
	if err != nil {
		return nil, fmt.Errorf("listen for direct gets: %w", err)
	}
	// The queries bound what is under way.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, fmt.Errorf("listen for direct gets: %w", err)
	}
	d.sub = sub
	return d, nil
}

// Close ends the reader; queries under way end with their contexts.
func (d *Direct) Close() { _ = d.sub.Unsubscribe() } // fails only where the connection is closed

// Get sends all queries at once and waits for all answers, for no longer than answerWithin.
func (d *Direct) Get(ctx context.Context, stream string, queries []Query) ([]Answer, error) {
	if len(queries) == 0 {
		return nil, nil
	}
	nc := d.js.Conn()
	if !nc.IsConnected() {
		return nil, fmt.Errorf("read %s: %w", stream, natsrpc.ErrNotSent)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	waiting, end := natsrpc.WhileConnected(ctx, nc)
	defer end()
	results := make(chan error, len(queries))
	exchanges := make([]*exchange, len(queries))
	names := make([]string, len(queries))
	for i := range queries {
		exchanges[i] = &exchange{batch: queries[i].Batch > 0, bare: queries[i].bareSeq(), done: func(err error) { results <- err }}
		names[i] = d.begin(exchanges[i])
	}
	defer d.forget(names)
	subject := apiSubject(d.js, "DIRECT.GET."+stream)
	for i := range queries {
		body, err := json.Marshal(&queries[i])
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		if err := nc.PublishRequest(subject, names[i], body); err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
	}
	var failed error
	for range queries {
		select {
		case err := <-results:
			failed = errors.Join(failed, err)
		case <-waiting.Done():
			return nil, fmt.Errorf("read %s: %w", stream, context.Cause(waiting))
		}
	}
	if failed != nil {
		return nil, fmt.Errorf("read %s: %w", stream, failed)
	}
	answers := make([]Answer, len(queries))
	for i, e := range exchanges {
		answers[i] = e.answer
	}
	return answers, nil
}

func (q *Query) bareSeq() uint64 {
	if q.Bare {
		return q.Seq
	}
	return 0
}

func (d *Direct) begin(e *exchange) (name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	name = d.inbox + "." + strconv.FormatUint(d.last, 36)
	d.open[name] = e
	return name
}

func (d *Direct) forget(names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		delete(d.open, name)
	}
}

// receive runs on one goroutine, that of the subscription. The lock is held while
// an answer grows, so that who gave up on it does not read it meanwhile.
func (d *Direct) receive(m *nats.Msg) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.open[m.Subject]
	if e == nil {
		return // given up
	}
	over, err := e.add(m)
	if over {
		delete(d.open, m.Subject)
		e.done(err)
	}
}

// add takes one message; over tells that it was the last one.
func (e *exchange) add(m *nats.Msg) (over bool, err error) {
	switch status := m.Header.Get(headerStatus); status {
	case "":
	case statusEndOfBatch:
		if pending := m.Header.Get(headerNumPending); pending != "" {
			if e.answer.Pending, err = strconv.ParseUint(pending, 10, 64); err != nil {
				return true, fmt.Errorf("direct get: what follows: %w", err)
			}
		}
		e.answer.More = e.answer.Pending > 0
		return true, nil
	case statusNoMsgs:
		return true, nil
	case statusNoResponders:
		return true, nats.ErrNoResponders
	default:
		return true, fmt.Errorf("direct get: %s %s", status, strings.TrimSpace(m.Header.Get(headerDescription)))
	}
	if e.bare > 0 {
		e.answer.Records = []Record{{Seq: e.bare, Data: m.Data}}
		return true, nil
	}
	r := Record{Subject: m.Header.Get(headerSubject), Data: m.Data, Header: m.Header}
	if r.Seq, err = strconv.ParseUint(m.Header.Get(headerSequence), 10, 64); err != nil {
		return true, fmt.Errorf("direct get: sequence: %w", err)
	}
	if r.Time, err = time.Parse(time.RFC3339Nano, m.Header.Get(headerTimestamp)); err != nil {
		return true, fmt.Errorf("direct get: time: %w", err)
	}
	e.answer.Records = append(e.answer.Records, r)
	return !e.batch, nil
}
