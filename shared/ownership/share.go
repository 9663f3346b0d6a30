package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Defaults of Config.
const (
	BeatDefault   = time.Second
	ExpiryDefault = 3 * time.Second
)

// beatsUnheardMax is how many heartbeats may be shown in a row without being
// heard before the watch is taken for dead.
const beatsUnheardMax = 3

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
	Log    *slog.Logger
	// Serve serves one partition until its context ends, then drains and returns.
	Serve func(ctx context.Context, partition int) error
}

// Share is this node's share of the partitions.
type Share struct {
	cfg   Config
	ready chan struct{}

	mu    sync.Mutex
	owned []int
}

// New makes a Share. Run says what is wrong with cfg.
func New(cfg Config) *Share {
	if cfg.Beat == 0 {
		cfg.Beat = BeatDefault
	}
	if cfg.Expiry == 0 {
		cfg.Expiry = ExpiryDefault
	}
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
	m := &members{
		kv: s.cfg.KV, service: s.cfg.Service, node: s.cfg.Node, beat: s.cfg.Beat, log: s.cfg.Log,
		deaf: make(chan struct{}, 1),
	}
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
		case p := <-a.ended:
			a.forget(p)
		case <-told: // not of interest any more, but its sender must not block
		}
		s.publish(a.serving())
	}
	return nil
}

// follow keeps the assignment true to the view until ctx ends.
func (s *Share) follow(ctx context.Context, m *members, told <-chan signal, a *assignment) {
	v := newView(s.cfg.Node, s.cfg.Expiry)
	ticker := time.NewTicker(s.cfg.Beat / 4)
	defer ticker.Stop()
	var (
		loaded bool
		nodes  []string
		shown  = m.shown.Load() // at the last echo
	)
	for {
		changed := false
		select {
		case <-ctx.Done():
			return
		case p := <-a.ended:
			a.forget(p)
			changed = true // it may be wanted again
		case sig := <-told:
			switch {
			case sig.loaded:
				loaded = true
			case sig.left:
				v.left(sig.node)
			default:
				v.heard(sig.node, time.Now())
				if sig.node == s.cfg.Node {
					shown = m.shown.Load()
				}
			}
		case <-ticker.C:
			v.expire(time.Now())
			if n := m.shown.Load(); n >= shown+beatsUnheardMax {
				shown = n
				select {
				case m.deaf <- struct{}{}:
				default:
				}
			}
		}
		if !loaded {
			continue // not knowing the others, this node would take everything
		}
		if now := v.nodes(); !slices.Equal(now, nodes) {
			nodes, changed = now, true
			s.cfg.Log.Info("members changed", "nodes", nodes)
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

func (s *Share) publish(owned []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned = owned
}
