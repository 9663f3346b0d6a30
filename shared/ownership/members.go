package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	watchRetry   = 200 * time.Millisecond
	leaveTimeout = time.Second
	// ghostAfter is how long a heartbeat is silent, by the server's clock, before it is
	// removed by the first node that sees it; ghostEvery is how often a node looks.
	ghostAfter = 15 * time.Second
	ghostEvery = 15 * time.Second
)

// signal is one report of the watch of the members bucket.
type signal struct {
	node string
	// revision and date are the server's.
	revision uint64
	date     time.Time
	shows    Announcement
	left     bool
	// replayed: it was there when the watch began.
	replayed bool
	loaded   bool // all that was there at the beginning has been reported
}

// members is this node's heartbeat and its ear.
type members struct {
	kv            jetstream.KeyValue
	service, node string
	// every is how often the heartbeat is shown.
	every atomic.Int64
	log   *slog.Logger
	// run is this run of the program, beats how many heartbeats it began to show.
	run   uint64
	beats atomic.Uint64
	// shown counts heartbeats the server took; echoed is what it was when the last
	// one came back.
	shown, echoed atomic.Uint64
	// taken and refused are when the last heartbeat began to be shown that the server took, and when
	// the last one failed though the connection was there, in ns after origin; 0 = none.
	taken, refused atomic.Int64
	origin         time.Time
	// deaf asks for a new watch.
	deaf chan struct{}
	// shows is the heartbeat's value; changed asks for it to be shown at once.
	shows   atomic.Pointer[Announcement]
	changed chan struct{}
}

func newMembers(kv jetstream.KeyValue, service, node string, beat time.Duration, log *slog.Logger) *members {
	m := &members{
		origin: time.Now(), kv: kv, service: service, node: node, log: log, run: 1 + rand.Uint64N(math.MaxInt64),
		deaf: make(chan struct{}, 1), changed: make(chan struct{}, 1),
	}
	m.every.Store(int64(beat))
	return m
}

// heard notes that this node's own heartbeat came back.
func (m *members) heard() { m.echoed.Store(m.shown.Load()) }

// listenAgain asks for a new watch where heartbeats are shown and none comes back.
func (m *members) listenAgain() {
	n := m.shown.Load()
	if n < m.echoed.Load()+beatsMissedMax {
		return
	}
	m.echoed.Store(n)
	select {
	case m.deaf <- struct{}{}:
	default:
	}
}

// announce sets what the heartbeat shows from now on.
func (m *members) announce(a Announcement) {
	if old := m.shows.Swap(&a); old != nil && old.equal(a) {
		return
	}
	m.showNow()
}

// showEvery sets how often the heartbeat is shown. The next one, which says so, is shown at once.
func (m *members) showEvery(d time.Duration) {
	if time.Duration(m.every.Swap(int64(d))) != d {
		m.showNow()
	}
}

func (m *members) showNow() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// show writes the heartbeat until ctx ends.
func (m *members) show(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	failing := false
	for {
		next.Reset(time.Duration(m.every.Load()))
		err := m.put(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			m.shown.Add(1)
			if failing {
				m.log.Info("heartbeats are stored again")
			}
		case !failing:
			m.log.Warn("heartbeats cannot be stored; partitions stay where they are", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-m.changed:
		case <-next.C:
		}
	}
}

func (m *members) put(ctx context.Context) error {
	every := time.Duration(m.every.Load())
	ctx, cancel := context.WithTimeout(ctx, max(every, 500*time.Millisecond))
	defer cancel()
	shows := *m.shows.Load()
	shows.Run, shows.Beat, shows.EveryMs = m.run, m.beats.Add(1), max(every.Milliseconds(), 1)
	began := time.Since(m.origin)
	_, err := m.kv.Put(ctx, topology.MemberKey(m.service, m.node), shows.encode())
	switch {
	case err == nil:
		m.taken.Store(int64(began))
	case leaderless(err):
		m.refused.Store(int64(time.Since(m.origin)))
	}
	return err
}

// leaderless tells whether a write failed as it does while the bucket elects its leader: no one
// answers, though the connection is there.
func leaderless(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// unstoredMax is how long no heartbeat may have been stored: longer than NATS takes to elect
// a leader.
const unstoredMax = 12 * time.Second

// check is an error if the server has stored no heartbeat for long: JetStream, or this node's
// part of it, is not available. Before the first, readiness is another's to say.
func (m *members) check() error {
	taken := m.taken.Load()
	if silent := time.Since(m.origin) - time.Duration(taken); taken > 0 && silent > pace.Of(unstoredMax) {
		return fmt.Errorf("JetStream has stored no heartbeat of this node for %v: it is not available", silent.Round(time.Second))
	}
	return nil
}

// signs are what the writes of heartbeats say.
func (m *members) signs() signs {
	at := func(ns int64) (t time.Time) {
		if ns > 0 {
			t = m.origin.Add(time.Duration(ns))
		}
		return t
	}
	return signs{beats: m.beats.Load(), taken: at(m.taken.Load()), refused: at(m.refused.Load())}
}

// leave takes the heartbeat away, so that the others need not wait for its expiry.
func (m *members) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := m.kv.Delete(ctx, topology.MemberKey(m.service, m.node)); err != nil {
		m.log.Debug("the heartbeat was not removed; it expires", "error", err)
	}
}

// sweep removes the heartbeats of nodes that died without taking them away, every
// ghostEvery until ctx ends. No one counts them; but they would stay forever.
func (m *members) sweep(ctx context.Context) {
	for backoff.Sleep(ctx, pace.Of(ghostEvery)) {
		if err := m.sweepOnce(ctx, ghostAfter); err != nil && ctx.Err() == nil {
			m.log.Debug("heartbeats of dead nodes were not removed; the next check does", "error", err)
		}
	}
}

// sweepOnce removes the service's heartbeats that are silent for longer than after. One
// that is shown meanwhile stays, since only what was seen is deleted.
func (m *members) sweepOnce(ctx context.Context, after time.Duration) error {
	all, err := List(ctx, m.kv)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Service != m.service || one.Node == m.node || one.Silent <= after {
			continue
		}
		err := m.kv.Delete(ctx, topology.MemberKey(one.Service, one.Node), jetstream.LastRevision(one.revision))
		switch {
		case err == nil:
			m.log.Info("the heartbeat of a dead node was removed", "node", one.Node, "duration", one.Silent.Round(time.Second))
		case !outrun(err):
			return err
		}
	}
	return nil
}

// listen tells what happens in the members bucket until ctx ends. Where the watch
// ends, or goes deaf, it begins again.
func (m *members) listen(ctx context.Context, tell chan<- signal) {
	for ctx.Err() == nil {
		if err := m.watch(ctx, tell); err != nil && ctx.Err() == nil {
			m.log.Debug("watching the members again", "reason", err)
		}
		backoff.Sleep(ctx, watchRetry)
	}
}

func (m *members) watch(ctx context.Context, tell chan<- signal) error {
	w, err := m.kv.Watch(ctx, topology.MemberKeys(m.service))
	if err != nil {
		return err
	}
	defer stopWatch(w)
	var deaf <-chan struct{} // from its first report on: until then it is being made, which takes long on a busy server
	for replayed := true; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deaf:
			return errors.New("heartbeats are stored but not received")
		case e, ok := <-w.Updates():
			if !ok {
				return errors.New("the watch ended")
			}
			if deaf == nil {
				select {
				case <-m.deaf: // it was said of the watch before
				default:
				}
				deaf = m.deaf
			}
			s := signal{loaded: e == nil, replayed: replayed}
			if e == nil {
				replayed = false
			} else {
				s.revision, s.date = e.Revision(), e.Created()
				s.node = strings.TrimPrefix(e.Key(), m.service+".")
				s.left = e.Operation() != jetstream.KeyValuePut
				s.shows = readAnnouncement(e.Value())
			}
			select {
			case tell <- s:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// stopWatch ends a watch whose updates no one reads any more. They are drained,
// because the watch cannot end while it waits to hand one over.
func stopWatch(w jetstream.KeyWatcher) {
	go func() {
		for range w.Updates() { // drained on purpose
		}
	}()
	_ = w.Stop() // fails only where there is nothing left to stop
}
