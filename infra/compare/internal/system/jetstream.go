package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/child"
	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
)

// Settings of the queue by hand.
const (
	jsConcurrency = 100
	jsStream      = "TASKS"
	jsSubject     = "tasks.run"
	jsConsumer    = "workers"
	jsWindow      = 4096 // publishes without an answer
	jsPull        = 1000 // messages per pull
	jsPending     = 100_000
)

// jetStream is what a user writes by hand: a stream as a work queue, a durable pull consumer, a pool of goroutines, and
// an acknowledgement per message. Delayed tasks are message schedules of the server.
type jetStream struct{ yard string }

func (jetStream) Name() string { return "jetstream" }

func (j jetStream) Missing() string { return missingFile(j.yard) }

func (j jetStream) Version() string {
	return "nats.go " + module("github.com/nats-io/nats.go") + ", nats-server " + moduleOf(j.yard, "github.com/nats-io/nats-server/v2") +
		" of the program yard"
}

func (jetStream) Settings() string {
	return fmt.Sprintf("file storage, sync_interval always or 1s; a work queue with %d handlers; bulk is PublishMsgAsync with %d "+
		"messages under way; an Ack is sent and not awaited; no results, no fairness, no limits", jsConcurrency, jsWindow)
}

func (j jetStream) Open(ctx context.Context, dir string, sync Sync) (load.Queue, error) {
	c, err := child.Start(child.Config{Dir: dir, Command: []string{
		j.yard, "server", "nats", "--data-dir", filepath.Join(dir, "nats"), "--port", "0",
		"--sync", string(sync), "--output", "json", "--log-level", "error",
	}})
	if err != nil {
		return nil, err
	}
	q := &jetStreamQueue{server: server{c}}
	return opened(q, q.open(ctx))
}

type jetStreamQueue struct {
	server
	url       string
	nc        *nats.Conn
	js        jetstream.JetStream
	schedules atomic.Int64
}

func (q *jetStreamQueue) open(ctx context.Context) (err error) {
	if q.url, err = readyURL(ctx, q.child); err != nil {
		return err
	}
	if q.nc, q.js, err = q.connect(); err != nil {
		return err
	}
	stream, err := q.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: jsStream, Subjects: []string{"tasks.>"}, Retention: jetstream.WorkQueuePolicy,
		Storage: jetstream.FileStorage, AllowMsgSchedules: true,
	})
	if err != nil {
		return err
	}
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: jsConsumer, FilterSubject: jsSubject, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: jsPending,
	})
	return err
}

func (q *jetStreamQueue) connect() (*nats.Conn, jetstream.JetStream, error) {
	nc, err := nats.Connect(q.url)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(jsWindow))
	return nc, js, err
}

func (q *jetStreamQueue) message(payload string, at time.Time) (*nats.Msg, []jetstream.PublishOpt) {
	m := &nats.Msg{Subject: jsSubject, Data: []byte(payload)}
	if at.IsZero() {
		return m, nil
	}
	m.Subject = fmt.Sprintf("tasks.at.%d", q.schedules.Add(1)) // a schedule has a subject of its own
	return m, []jetstream.PublishOpt{jetstream.WithScheduleAt(at), jetstream.WithScheduleTarget(jsSubject)}
}

func (q *jetStreamQueue) Submit(ctx context.Context, payload string, at time.Time) error {
	m, opts := q.message(payload, at)
	_, err := q.js.PublishMsg(ctx, m, opts...)
	return err
}

func (q *jetStreamQueue) SubmitMany(ctx context.Context, payloads []string, at time.Time) error {
	futures := make([]jetstream.PubAckFuture, len(payloads))
	for i, p := range payloads {
		m, opts := q.message(p, at)
		f, err := q.js.PublishMsgAsync(m, append(opts, jetstream.WithStallWait(time.Minute))...)
		if err != nil {
			return err
		}
		futures[i] = f
	}
	for _, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (q *jetStreamQueue) Work(ctx context.Context, handle func(payload string)) (func() error, error) {
	nc, js, err := q.connect()
	if err != nil {
		return nil, err
	}
	consumer, err := js.Consumer(ctx, jsStream, jsConsumer)
	if err != nil {
		nc.Close()
		return nil, err
	}
	work := make(chan jetstream.Msg)
	var failed atomic.Pointer[error]
	var pool sync.WaitGroup
	for range jsConcurrency {
		pool.Go(func() {
			for m := range work {
				handle(string(m.Data()))
				if err := m.Ack(); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) { work <- m }, jetstream.PullMaxMessages(jsPull))
	if err != nil {
		close(work)
		nc.Close()
		return nil, err
	}
	return func() error {
		consuming.Stop()
		<-consuming.Closed()
		close(work)
		pool.Wait()
		nc.Close()
		if err := failed.Load(); err != nil {
			return fmt.Errorf("acknowledge: %w", *err)
		}
		return nil
	}, nil
}

func (q *jetStreamQueue) CPU() time.Duration { return q.child.CPU() }

func (q *jetStreamQueue) Close() error {
	if q.nc != nil {
		q.nc.Close()
	}
	return q.child.Stop()
}

// readyURL is the address that a `yard` server prints when it is ready.
func readyURL(ctx context.Context, c *child.Child) (string, error) {
	line, err := c.FirstLine(ctx)
	if err != nil {
		return "", err
	}
	var ready struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(line), &ready); err != nil || ready.URL == "" {
		return "", errors.Join(fmt.Errorf("%q has no URL", line), err)
	}
	return ready.URL, nil
}

// missingFile says that a file is missing, "" if it is there.
func missingFile(path string) string {
	if _, err := os.Stat(path); err != nil {
		return "no program " + path + "; name it with --yard"
	}
	return ""
}
