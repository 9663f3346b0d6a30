package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

const (
	stream = "LOG"
	soon   = 60 * time.Second
)

// logServer is a real server with one stream, LOG, of the subjects log.>.
func logServer(tb testing.TB, change func(*jetstream.StreamConfig)) (*natskit.Server, jetstream.JetStream) {
	tb.Helper()
	srv := natskit.Run(tb)
	js := connect(tb, srv)
	cfg := jetstream.StreamConfig{
		Name: stream, Subjects: []string{"log.>"}, AllowAtomicPublish: true, AllowDirect: true, AllowMsgTTL: true,
		Discard: jetstream.DiscardNew, Duplicates: time.Minute,
	}
	if change != nil {
		change(&cfg)
	}
	testkit.NoError(tb, testkit.Err(js.CreateStream(tb.Context(), cfg)))
	return srv, js
}

// stop stops a server, and waits until a connection has noticed it.
func stop(t *testing.T, srv *natskit.Server, nc *nats.Conn) {
	t.Helper()
	srv.Stop()
	testkit.Eventually(t, soon, func() error {
		if nc.IsConnected() {
			return errors.New("still connected")
		}
		return nil
	})
}

func connect(tb testing.TB, srv *natskit.Server) jetstream.JetStream {
	tb.Helper()
	js, err := jetstream.New(srv.Connect(tb))
	testkit.NoError(tb, err)
	return js
}

func expect(subject string, last string) nats.Header {
	return nats.Header{"Nats-Expected-Last-Subject-Sequence": {last}, "x": {subject}}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	nc := js.Conn()
	header := nats.Header{"a": {"b"}}
	seq, dup, err := natslog.Append(t.Context(), nc, natslog.Msg{Subject: "log.a", Data: []byte("1"), Header: header, MsgID: "id"})
	if err != nil || seq != 1 || dup {
		t.Fatalf("%d %v %v", seq, dup, err)
	}
	if len(header) != 1 {
		t.Errorf("the caller's header was changed: %v", header)
	}
	seq, dup, err = natslog.Append(t.Context(), nc, natslog.Msg{Subject: "log.a", Data: []byte("1"), MsgID: "id"})
	if err != nil || seq != 1 || !dup {
		t.Errorf("a repetition: %d %v %v", seq, dup, err)
	}
	if seq, _, err := natslog.Append(t.Context(), nc, natslog.Msg{Subject: "log.b"}); err != nil || seq != 2 {
		t.Errorf("without an id: %d %v", seq, err)
	}
	if last, err := natslog.LastSeq(t.Context(), js, stream); err != nil || last != 2 {
		t.Errorf("last sequence %d %v", last, err)
	}
	r, err := natslog.LastForSubject(t.Context(), js, stream, "log.a")
	if err != nil || r.Seq != 1 || string(r.Data) != "1" || r.Header.Get("a") != "b" || r.Subject != "log.a" || time.Since(r.Time) > time.Minute {
		t.Errorf("last of log.a: %+v %v", r, err)
	}
	if r, err := natslog.LastForSubject(t.Context(), js, stream, "log.none"); r != nil || err != nil {
		t.Errorf("last of an empty subject: %v %v", r, err)
	}
	if _, err := natslog.LastForSubject(t.Context(), js, "NONE", "x"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("no stream: %v", err)
	}
}

func TestRefusedAppendsAreNotStored(t *testing.T) {
	t.Parallel()
	srv, js := logServer(t, func(c *jetstream.StreamConfig) { c.MaxMsgs = 2 })
	nc := js.Conn()
	append1 := func(ctx context.Context, m natslog.Msg) error {
		_, _, err := natslog.Append(ctx, nc, m)
		return err
	}
	must(t, append1(t.Context(), natslog.Msg{Subject: "log.a"}))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]error{
		"no stream":     append1(t.Context(), natslog.Msg{Subject: "nowhere"}),
		"context ended": append1(ended, natslog.Msg{Subject: "log.a"}),
		"too large":     append1(t.Context(), natslog.Msg{Subject: "log.a", Data: make([]byte, 2<<20)}),
		"wrong last":    append1(t.Context(), natslog.Msg{Subject: "log.a", Header: expect("log.a", "7")}),
	}
	must(t, append1(t.Context(), natslog.Msg{Subject: "log.a"}))
	cases["full"] = append1(t.Context(), natslog.Msg{Subject: "log.a"})
	stop(t, srv, nc)
	cases["disconnected"] = append1(t.Context(), natslog.Msg{Subject: "log.a"})
	for name, err := range cases {
		if !errors.Is(err, natslog.ErrNotStored) || errors.Is(err, natslog.ErrOutcomeUnknown) {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, natslog.ErrWrongLast) != (name == "wrong last") {
			t.Errorf("%s: %v", name, err)
		}
	}
	srv.Restart(t)
	if last, err := natslog.LastSeq(t.Context(), connect(t, srv), stream); err != nil || last != 2 {
		t.Errorf("%d messages are stored: %v", last, err)
	}
}

// TestLostAnswerIsUnknown puts a proxy that swallows answers between the client
// and the server: the message is stored, and the client cannot know.
func TestLostAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for answers that do not come")
	srv, js := logServer(t, nil)
	proxy := newProxy(t, strings.TrimPrefix(srv.URL, "nats://"))
	nc, err := nats.Connect("nats://"+proxy.addr, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectBufSize(-1))
	testkit.NoError(t, err)
	defer nc.Close()
	m := natslog.Msg{Subject: "log.a", MsgID: "once"}

	proxy.mute(true)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := natslog.Append(short, nc, m); !errors.Is(err, natslog.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	cut := make(chan error)
	go func() {
		_, _, err := natslog.Append(t.Context(), nc, natslog.Msg{Subject: "log.a", MsgID: "twice"})
		cut <- err
	}()
	testkit.Eventually(t, soon, func() error {
		if last, err := natslog.LastSeq(t.Context(), js, stream); err != nil || last != 2 {
			return errors.New("not stored yet")
		}
		return nil
	})
	proxy.cut()
	if err := <-cut; !errors.Is(err, natslog.ErrOutcomeUnknown) {
		t.Errorf("the connection broke: %v", err)
	}
	proxy.mute(false)
	testkit.Eventually(t, soon, func() error {
		seq, dup, err := natslog.Append(t.Context(), nc, m)
		if err == nil && (seq != 1 || !dup) {
			t.Errorf("the repetition was stored again at %d", seq)
		}
		return err
	})
}

func TestAppendAtomic(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	nc := js.Conn()
	batch := []natslog.Msg{
		{Subject: "log.key", Data: []byte("k"), Header: expect("log.key", "0"), MsgID: "k"},
		{Subject: "log.task", Data: []byte("t"), MsgID: "t"},
		{Subject: "log.task", Data: []byte("u"), MsgID: "u"},
	}
	seq, err := natslog.AppendAtomic(t.Context(), nc, batch)
	if err != nil || seq != 3 {
		t.Fatalf("%d %v", seq, err)
	}
	if _, err := natslog.AppendAtomic(t.Context(), nc, batch); !errors.Is(err, natslog.ErrDuplicate) || errors.Is(err, natslog.ErrNotStored) {
		t.Errorf("a repetition: %v", err)
	}
	_, err = natslog.AppendAtomic(t.Context(), nc, []natslog.Msg{
		{Subject: "log.task", MsgID: "v"},
		{Subject: "log.key", Header: expect("log.key", "0"), MsgID: "w"},
	})
	if !errors.Is(err, natslog.ErrWrongLast) || !errors.Is(err, natslog.ErrNotStored) {
		t.Errorf("a taken key: %v", err)
	}
	if seq, err := natslog.AppendAtomic(t.Context(), nc, []natslog.Msg{{Subject: "log.one", MsgID: "one"}}); err != nil || seq != 4 {
		t.Errorf("a batch of one: %d %v", seq, err)
	}
	if _, err := natslog.AppendAtomic(t.Context(), nc, []natslog.Msg{{Subject: "log.one", MsgID: "one"}}); !errors.Is(err, natslog.ErrDuplicate) {
		t.Errorf("a repeated batch of one: %v", err)
	}
	for name, msgs := range map[string][]natslog.Msg{
		"empty": nil, "too many": make([]natslog.Msg, natslog.BatchMsgsMax+1),
		"no stream": {{Subject: "nowhere"}, {Subject: "nowhere"}},
	} {
		for i := range msgs {
			if msgs[i].Subject == "" {
				msgs[i].Subject = "log.many"
			}
		}
		if _, err := natslog.AppendAtomic(t.Context(), nc, msgs); !errors.Is(err, natslog.ErrNotStored) {
			t.Errorf("%s: %v", name, err)
		}
	}
	full := make([]natslog.Msg, natslog.BatchMsgsMax)
	for i := range full {
		full[i].Subject = "log.many"
	}
	if seq, err := natslog.AppendAtomic(t.Context(), nc, full); err != nil || seq != 4+natslog.BatchMsgsMax {
		t.Errorf("the largest batch: %d %v", seq, err)
	}
}

func TestAtomicBatchWhereItIsNotAllowed(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false })
	if _, err := natslog.AppendAtomic(t.Context(), js.Conn(), []natslog.Msg{{Subject: "log.a"}, {Subject: "log.b"}}); !errors.Is(err, natslog.ErrNotStored) {
		t.Errorf("%v", err)
	}
	if last, err := natslog.LastSeq(t.Context(), js, stream); err != nil || last != 0 {
		t.Errorf("%d messages are stored: %v", last, err)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	testkit.NoError(tb, err)
}

// proxy passes bytes between clients and a server, and can lose the server's.
type proxy struct {
	addr  string
	state chan proxyState
}

type proxyState struct {
	muted bool
	conns []net.Conn
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p := &proxy{addr: l.Addr().String(), state: make(chan proxyState, 1)}
	p.state <- proxyState{}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			s := <-p.state
			s.conns = append(s.conns, client, up)
			p.state <- s
			go p.pipe(up, client, false)
			go p.pipe(client, up, true)
		}
	}()
	t.Cleanup(p.cut)
	return p
}

func (p *proxy) pipe(to, from net.Conn, mutable bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		s := <-p.state
		p.state <- s
		if mutable && s.muted {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) mute(on bool) {
	s := <-p.state
	s.muted = on
	p.state <- s
}

func (p *proxy) cut() {
	s := <-p.state
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
	p.state <- s
}

// TestI1_AnAnswerThatCannotBeIsUnknown: a server that shut down between the messages of a batch has answered with the sequence of the first one; both
// were stored when it had started again.
func TestI1_AnAnswerThatCannotBeIsUnknown(t *testing.T) {
	nc := natskit.Run(t).Connect(t)
	for seq, want := range map[uint64]error{16: natslog.ErrOutcomeUnknown, 17: natslog.ErrOutcomeUnknown, 18: nil, 30: nil} {
		answers, err := nc.Subscribe("log.b", func(m *nats.Msg) {
			if err := m.Respond(fmt.Appendf(nil, `{"stream":"LOG","seq":%d,"batch":"x","count":2}`, seq)); err != nil {
				t.Error(err)
			}
		})
		must(t, err)
		got, err := natslog.AppendAtomic(t.Context(), nc, []natslog.Msg{{Subject: "log.a"}, natslog.Msg{Subject: "log.b"}.Over(16)})
		if !errors.Is(err, want) || want == nil && got != seq {
			t.Errorf("answered with %d: %d, %v", seq, got, err)
		}
		must(t, answers.Unsubscribe())
	}
}
