package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// fill appends n messages of the given size to each subject in turn.
func fill(tb testing.TB, nc *nats.Conn, n, size int, subjects ...string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), soon)
	defer cancel()
	var group sync.WaitGroup
	for w := range 16 { // many at once, because each is synced to disk
		group.Go(func() {
			for i := w; i < n; i += 16 {
				m := natslog.Msg{Subject: subjects[i%len(subjects)], Data: make([]byte, size)}
				if _, _, err := natslog.Append(ctx, nc, m); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// recording collects what a reader hands out.
type recording struct {
	mu   sync.Mutex
	seqs []uint64
}

func (r *recording) add(rec natslog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seqs = append(r.seqs, rec.Seq)
	return nil
}

func (r *recording) snapshot() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seqs)
}

// waitFor waits until from..to came, each once and in order.
func (r *recording) waitFor(t *testing.T, from, to uint64) {
	t.Helper()
	testkit.Eventually(t, soon, func() error {
		if n := len(r.snapshot()); n < int(to-from+1) {
			return fmt.Errorf("%d records of %d came", n, to-from+1)
		}
		return nil
	})
	for i, seq := range r.snapshot() {
		testkit.MustEqual(t, fmt.Sprintf("record %d is sequence", i), seq, from+uint64(i))
	}
}

// read runs Read in the background; stop ends it and returns its error.
func read(t *testing.T, js jetstream.JetStream, cfg natslog.ReadConfig, handle func(natslog.Record) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	cfg.Stream = stream
	go func() { done <- natslog.Read(ctx, js, cfg, handle) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return stop
}

func TestReadInOrder(t *testing.T) {
	srv, js := logServer(t, nil)
	fill(t, js.Conn(), 300, 100, "log.a", "log.b", "log.c")
	reader := connect(t, srv)
	if _, err := natslog.LastSeq(t.Context(), reader, stream); err != nil { // nats.go starts its goroutines
		t.Fatal(err)
	}
	idle := goleak.IgnoreCurrent()
	var all recording
	stop := read(t, reader, natslog.ReadConfig{StartSeq: 11}, all.add)
	all.waitFor(t, 11, 300)
	fill(t, js.Conn(), 50, 100, "log.a")
	all.waitFor(t, 11, 350)
	testkit.Check(t, stop())
	goleak.VerifyNone(t, idle)
	s, err := js.Stream(t.Context(), stream)
	must(t, err)
	for name := range s.ConsumerNames(t.Context()).Name() {
		t.Errorf("consumer %s was left behind", name)
	}
}

func TestReadFiltered(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	fill(t, js.Conn(), 30, 10, "log.a", "log.b", "log.c")
	var got, one recording
	must(t, natslog.ReadAll(t.Context(), js, natslog.ReadConfig{Stream: stream, Filters: []string{"log.a", "log.c"}}, func(r natslog.Record) error {
		if r.Subject == "log.b" {
			t.Errorf("log.b was read")
		}
		return got.add(r)
	}))
	must(t, natslog.ReadAll(t.Context(), js, natslog.ReadConfig{Stream: stream, Filters: []string{"log.b"}}, one.add))
	if len(got.seqs) != 20 || len(one.seqs) != 10 {
		t.Errorf("read %v and %v", got.seqs, one.seqs)
	}
}

func TestReadRangeEnds(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	none := func(natslog.Record) error { t.Error("a record came"); return nil }
	must(t, natslog.ReadAll(t.Context(), js, natslog.ReadConfig{Stream: stream}, none))
	fill(t, js.Conn(), 20, 10, "log.a") // 1..20
	fill(t, js.Conn(), 20, 10, "log.b") // 21..40
	for _, c := range []struct {
		filters     []string
		start, upTo uint64
		first, last uint64
	}{
		{nil, 0, 0, 1, 40},
		{nil, 5, 7, 5, 7},
		{nil, 5, 5, 5, 5},
		{nil, 40, 0, 40, 40},
		{nil, 41, 0, 1, 0},
		{nil, 7, 6, 1, 0},
		{nil, 39, 100, 39, 40},
		{[]string{"log.a"}, 0, 0, 1, 20}, // the last one lies before the end
		{[]string{"log.b"}, 0, 20, 1, 0}, // the first one lies behind the end
		{[]string{"log.b"}, 0, 25, 21, 25},
		{[]string{"log.c"}, 0, 0, 1, 0},
		{[]string{"log.c", "log.a"}, 15, 30, 15, 20},
	} {
		var got recording
		err := natslog.ReadRange(t.Context(), js, natslog.ReadConfig{Stream: stream, Filters: c.filters, StartSeq: c.start}, c.upTo, got.add)
		var want []uint64
		for seq := c.first; seq <= c.last; seq++ {
			want = append(want, seq)
		}
		if err != nil || !slices.Equal(got.seqs, want) {
			t.Errorf("%+v: %v %v", c, got.seqs, err)
		}
	}
	s, err := js.Stream(t.Context(), stream)
	must(t, err)
	must(t, s.Purge(t.Context()))
	must(t, natslog.ReadRange(t.Context(), js, natslog.ReadConfig{Stream: stream}, 40, none))
}

func TestReadStops(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	fill(t, js.Conn(), 3, 10, "log.a")
	want := errors.New("enough")
	fail := func(r natslog.Record) error {
		if r.Seq == 2 {
			return want
		}
		return nil
	}
	if err := natslog.Read(t.Context(), js, natslog.ReadConfig{Stream: stream}, fail); !errors.Is(err, want) {
		t.Errorf("%v", err)
	}
	if err := natslog.ReadAll(t.Context(), js, natslog.ReadConfig{Stream: stream}, fail); !errors.Is(err, want) {
		t.Errorf("%v", err)
	}
	if err := natslog.Read(t.Context(), js, natslog.ReadConfig{Stream: "NONE"}, fail); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("no stream: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := natslog.ReadRange(ended, js, natslog.ReadConfig{Stream: stream}, 3, fail); !errors.Is(err, context.Canceled) {
		t.Errorf("a range cut short: %v", err)
	}
}

// TestBlockedReaderIsLeftAlone blocks a reader, with more waiting than it may
// prefetch, while its consumer disappears from the server: what a pause of
// minutes does.
func TestBlockedReaderIsLeftAlone(t *testing.T) {
	t.Parallel()
	srv, js := logServer(t, nil)
	const n = 200
	fill(t, js.Conn(), n, 20<<10, "log.a") // 4 MB
	reader := connect(t, srv)
	blocked, release := make(chan struct{}), make(chan struct{})
	var got recording
	read(t, reader, natslog.ReadConfig{PrefetchBytes: 1}, func(r natslog.Record) error {
		if r.Seq == 10 {
			close(blocked)
			<-release
		}
		return got.add(r)
	})
	<-blocked
	s, err := js.Stream(t.Context(), stream)
	must(t, err)
	for name := range s.ConsumerNames(t.Context()).Name() {
		must(t, s.DeleteConsumer(t.Context(), name))
	}
	if in := reader.Conn().Stats().InBytes; in > 3<<20 {
		t.Errorf("a reader that may hold one message and is blocked was sent %d bytes", in)
	}
	close(release)
	got.waitFor(t, 1, n)
}

func TestReadSurvivesRestarts(t *testing.T) {
	t.Parallel()
	srv, js := logServer(t, nil)
	fill(t, js.Conn(), 100, 1000, "log.a")
	reader := connect(t, srv)
	blocked, release := make(chan struct{}), make(chan struct{})
	var got, behind recording
	read(t, reader, natslog.ReadConfig{}, got.add)
	read(t, reader, natslog.ReadConfig{}, func(r natslog.Record) error { // is in handle while the server restarts
		if r.Seq == 50 {
			close(blocked)
			<-release
		}
		return behind.add(r)
	})
	got.waitFor(t, 1, 100)
	<-blocked
	for restarts := range 2 {
		srv.Restart(t)
		last := uint64(100*restarts + 200)
		fill(t, connect(t, srv).Conn(), 100, 1000, "log.a")
		got.waitFor(t, 1, last)
	}
	close(release)
	behind.waitFor(t, 1, 300)
}

// TestReadSurvivesCuts breaks the reader's connection again and again while it
// reads: nothing is lost and nothing comes twice.
func TestReadSurvivesCuts(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "cuts connections for seconds")
	srv, js := logServer(t, nil)
	const n = 600
	fill(t, js.Conn(), n, 10<<10, "log.a")
	p := newProxy(t, strings.TrimPrefix(srv.URL, "nats://"))
	nc, err := nats.Connect("nats://"+p.addr, nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond), nats.ReconnectBufSize(-1))
	must(t, err)
	defer nc.Close()
	reader, err := jetstream.New(nc)
	must(t, err)
	var got recording
	read(t, reader, natslog.ReadConfig{PrefetchBytes: 1}, func(r natslog.Record) error {
		if r.Seq%97 == 0 {
			p.cut()
		}
		return got.add(r)
	})
	got.waitFor(t, 1, n)
}

func TestReadSkipsWhatIsPurged(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	fill(t, js.Conn(), 50, 10, "log.a")
	s, err := js.Stream(t.Context(), stream)
	must(t, err)
	must(t, s.Purge(t.Context(), jetstream.WithPurgeSequence(21)))
	var got recording
	read(t, js, natslog.ReadConfig{}, got.add)
	got.waitFor(t, 21, 50)
}

func TestReadEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	srv, _ := logServer(t, nil)
	js := connect(t, srv)
	done := make(chan error)
	go func() {
		done <- natslog.Read(t.Context(), js, natslog.ReadConfig{Stream: stream}, func(natslog.Record) error { return nil })
	}()
	js.Conn().Close()
	if err := <-done; !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("%v", err)
	}
}
