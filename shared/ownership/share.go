package ownership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Defaults of Config.
const (
	BeatDefault   = time.Second
	ExpiryDefault = 3 * time.Second
)

// beatsUnheardMax is how many heartbeats may be shown in a row without being
// heard before the watch is taken for dead.
const beatsUnheardMax = 3

// How a partition that was given up, and that no node serves, is tried again.
const (
	StoppedRetryDefault = 30 * time.Second
	stoppedRetryLast    = 10 * time.Minute
)

// ErrGiveUp is what Serve wraps to give its partition up: this node does not serve
// it any more, says so to the others, and raises the alarm yard_partition_stopped.
// The next node in line begins. It ends with the process; or, where every node has
// given the partition up, after a while, in which the reason may have gone.
var ErrGiveUp = errors.New("the partition is given up")

// Config of a Share. All fields without a default are required.
type Config struct {
	// Service is whose partitions these are, Node this node's name among its
	// nodes: [A-Za-z0-9_-]{1,64}. Two nodes of one name serve the same partitions.
	Service, Node string
	// Count is how many partitions there are, 0..Count-1.
	Count int
	// KV is the members bucket.
	KV jetstream.KeyValue
	// Beat is how often the heartbeat is shown. Default BeatDefault.
	Beat time.Duration
	// Expiry is how long a node is believed alive without one, at least three
	// beats. Default ExpiryDefault. Longer delays takeovers after a crash, shorter
	// moves partitions on hiccups.
	Expiry time.Duration
	// Version is the log version that the cluster writes, asked often. A node that
	// cannot read it serves nothing. Default: the first version.
	Version func() uint32
	// Reads and Writes are the newest log versions that this node announces. Default:
	// those of this program.
	Reads, Writes uint32
	// StoppedRetry is how long a partition given up by all nodes is left alone the
	// first time. Default StoppedRetryDefault. Shorter repeats an alarm that only a
	// person can end.
	StoppedRetry time.Duration
	// Metrics may be nil.
	Metrics *telemetry.Metrics
	Log     *slog.Logger
	// Serve serves one partition until its context ends, then drains and returns. An
	// error is followed by another call, one that wraps ErrGiveUp by none.
	Serve func(ctx context.Context, partition int) error
}

// Share is this node's share of the partitions.
type Share struct {
	cfg   Config
	ready chan struct{}

	mu    sync.Mutex
	owned []int
	// unreadable is the cluster's version that this node cannot read, or 0.
	unreadable uint32
}

// New makes a Share. Run says what is wrong with cfg.
func New(cfg Config) *Share {
	if cfg.Beat == 0 {
		cfg.Beat = BeatDefault
	}
	if cfg.Expiry == 0 {
		cfg.Expiry = ExpiryDefault
	}
	if cfg.StoppedRetry == 0 {
		cfg.StoppedRetry = StoppedRetryDefault
	}
	if cfg.Version == nil {
		cfg.Version = func() uint32 { return logversion.First }
	}
	cfg.Reads, cfg.Writes = cmp.Or(cfg.Reads, logversion.ReadMax()), cmp.Or(cfg.Writes, logversion.WriteMax())
	return &Share{cfg: cfg, ready: make(chan struct{})}
}

// Ready is closed once this node knows its share and Serve was called for all of it.
func (s *Share) Ready() <-chan struct{} { return s.ready }

// Owned is the partitions being served, sorted.
func (s *Share) Owned() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.owned)
}

// Check is a condition of being ready, of a nil Share too: an error where the
// cluster writes a log version that this node cannot read, so that it serves nothing.
func (s *Share) Check() error {
	if s == nil { // not made yet, which is another condition's to say
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreadable == 0 {
		return nil
	}
	return &logversion.UnknownError{Version: s.unreadable, ReadMax: s.cfg.Reads}
}

func (c Config) check() error {
	if err := ids.CheckName(c.Service); err != nil {
		return fmt.Errorf("ownership: service name %q %w", c.Service, err)
	}
	if err := ids.CheckName(c.Node); err != nil {
		return fmt.Errorf("ownership: node name %q %w", c.Node, err)
	}
	switch {
	case c.Count < 1:
		return fmt.Errorf("ownership: %d partitions", c.Count)
	case c.KV == nil || c.Log == nil || c.Serve == nil:
		return errors.New("ownership: KV, Log and Serve are required")
	case c.Beat <= 0 || c.Expiry < 3*c.Beat:
		return fmt.Errorf("ownership: expiry %v is less than three beats of %v", c.Expiry, c.Beat)
	}
	return nil
}

// Run serves this node's share until ctx ends; then it drains, takes the heartbeat
// away and returns nil. The heartbeat is shown until all is drained, so that
// nobody begins with a partition before this node is done with it.
func (s *Share) Run(ctx context.Context) error {
	if err := s.cfg.check(); err != nil {
		return err
	}
	m := newMembers(s.cfg.KV, s.cfg.Service, s.cfg.Node, s.cfg.Beat, s.cfg.Log)
	m.announce(s.announcement(nil))
	alive, die := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	told := make(chan signal, 64)
	background.Go(func() { m.show(alive) })
	background.Go(func() { m.listen(alive, told) })
	defer func() {
		die()
		background.Wait()
		m.leave()
	}()

	a := newAssignment(ctx, s.cfg)
	s.follow(ctx, m, told, a)
	for a.busy() { // ctx has ended, so every Serve is on its way out
		select {
		case e := <-a.ended:
			a.forget(e)
		case <-told: // not of interest any more, but its sender must not block
		}
		s.publish(a.serving())
	}
	return nil
}

// follow keeps the assignment true to the view until ctx ends.
func (s *Share) follow(ctx context.Context, m *members, told <-chan signal, a *assignment) {
	v := newView(s.cfg.Node, s.cfg.Expiry)
	v.announces(s.announcement(nil))
	ticker := time.NewTicker(s.cfg.Beat / 4)
	defer ticker.Stop()
	var nodes []Candidate
	for {
		changed := false
		select {
		case <-ctx.Done():
			return
		case e := <-a.ended:
			a.forget(e)
			changed = true // it may be wanted again
		case sig := <-told:
			v.take(sig, time.Now())
			if sig.node == s.cfg.Node {
				m.heard()
			}
		case <-ticker.C:
			v.expire(time.Now())
			m.listenAgain()
			if v.loaded {
				a.retry()
			}
		}
		if !v.loaded {
			continue // not knowing the others, this node would take everything
		}
		shows := s.announcement(a.refusals.partitions())
		v.announces(shows)
		m.announce(shows)
		version := s.cfg.Version()
		s.readable(version)
		if now := v.candidates(version); !slices.EqualFunc(now, nodes, Candidate.equal) {
			nodes, changed = now, true
			s.cfg.Log.Info("members changed", "nodes", v.nodes(), "candidates", nodes)
		}
		if !changed {
			continue
		}
		a.reconcile(nodes)
		s.publish(a.serving())
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	}
}

// announcement is what this node shows with these partitions given up.
func (s *Share) announcement(stopped []int) Announcement {
	return Announcement{Reads: s.cfg.Reads, Writes: s.cfg.Writes, Stopped: stopped}
}

// readable notes whether this node reads the cluster's version, and says it when
// that changes.
func (s *Share) readable(version uint32) {
	unreadable := uint32(0)
	if version > s.cfg.Reads {
		unreadable = version
	}
	s.mu.Lock()
	before := s.unreadable
	s.unreadable = unreadable
	s.mu.Unlock()
	if unreadable != 0 && unreadable != before {
		s.cfg.Log.Error("this node serves no partition", "error", s.Check())
	}
}

func (s *Share) publish(owned []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned = owned
}
