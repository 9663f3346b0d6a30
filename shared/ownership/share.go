package ownership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Defaults of Config.
const (
	BeatDefault   = 250 * time.Millisecond
	ExpiryDefault = 1250 * time.Millisecond
)

// beatsMissedMin is how many of its own beats a node may miss at least.
const beatsMissedMin = 3

// beatsMissedMax is how many heartbeats may be shown in a row without being
// heard before the watch is taken for dead.
const beatsMissedMax = 3

// How a partition that was given up, and that no node serves, is tried again.
const (
	StoppedRetryDefault = 30 * time.Second
	stoppedRetryLast    = 10 * time.Minute
)

// ErrGiveUp is what Serve wraps to give its partition up: this node does not serve
// it any more, says so to the others, and raises the alarm signals.PartitionStopped.
// The next node in line begins. It ends with the process; or, where every node has
// given the partition up, after a while, in which the reason may have gone.
var ErrGiveUp = errors.New("the partition was given up")

// Config of a Share. All fields without a default are required.
type Config struct {
	// Service is whose partitions these are, Node this node's name among its
	// nodes: [A-Za-z0-9_-]{1,64}. Two nodes of one name serve the same partitions.
	Service, Node string
	// Count is how many partitions there are, 0..Count-1.
	Count int
	// KV is the members bucket.
	KV jetstream.KeyValue
	// Beat is how often the heartbeat is shown; a node that knows of no other one shows it half as often. Default BeatDefault.
	Beat time.Duration
	// Expiry is how long a node is believed alive without one, at least three
	// beats. Default ExpiryDefault. Longer delays takeovers after a crash, shorter
	// moves partitions on hiccups.
	Expiry time.Duration
	// Unfenced: what is served is not fenced by a log, so a node of which no one may have heard for
	// Expiry (it was stopped, or cut off) ends serving, and begins again once it has
	// heard a heartbeat that it showed since. While the members bucket has no leader, for
	// seconds after the loss of a NATS server, all go on.
	Unfenced bool
	// Version is the log version that the cluster writes, asked often. A node that
	// cannot read it serves nothing.
	Version func() uint32
	// Newest is the newest log version that this node reads and writes. Default: this program's.
	Newest uint32
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

	// members is set by Run.
	members atomic.Pointer[members]

	mu    sync.Mutex
	owned []Served
	// unowned are the partitions that no node serves, as far as this one can tell.
	unowned []int
	// unreadable is the cluster's version that this node cannot read, or 0.
	unreadable uint32
}

// New makes a Share. Run says what is wrong with cfg.
func New(cfg Config) *Share {
	cfg.Beat = cmp.Or(cfg.Beat, pace.Of(BeatDefault))
	cfg.Expiry = cmp.Or(cfg.Expiry, pace.Of(ExpiryDefault))
	cfg.StoppedRetry = cmp.Or(cfg.StoppedRetry, StoppedRetryDefault)
	cfg.Newest = cmp.Or(cfg.Newest, logversion.Newest())
	return &Share{cfg: cfg, ready: make(chan struct{})}
}

// Ready is closed once this node knows its share and Serve was called for all of it.
func (s *Share) Ready() <-chan struct{} { return s.ready }

// AwaitFirst closes ready once all of the first share has begun, unless ctx ends before.
func (s *Share) AwaitFirst(ctx context.Context, begun func(p int) <-chan struct{}, ready chan<- struct{}) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return
	}
	for _, p := range s.Owned() {
		select {
		case <-begun(p):
		case <-ctx.Done():
			return
		}
	}
	close(ready)
}

// Owned is the partitions being served, sorted.
func (s *Share) Owned() []int { return partitions(s.Report().Served) }

func partitions(served []Served) (all []int) {
	for _, s := range served {
		all = append(all, s.Partition)
	}
	return all
}

// Served is a partition that a node serves, and since when, by the clock of the node.
type Served struct {
	Partition int
	Since     time.Time
}

// Report is what a node serves.
type Report struct {
	// Count is how many partitions the service has.
	Count int
	// Served are those that the node serves, sorted.
	Served []Served
}

// Report is what this node serves. A nil Share serves nothing.
func (s *Share) Report() Report {
	if s == nil {
		return Report{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Report{s.cfg.Count, slices.Clone(s.owned)}
}

// Warn is an error that names the partitions without an owner, if there are any; it says nothing
// about this node. A nil Share has nothing to say.
func (s *Share) Warn() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unowned) == 0 {
		return nil
	}
	return fmt.Errorf("no node serves %d of %d partitions: %v", len(s.unowned), s.cfg.Count, s.unowned)
}

// Check is a condition of being ready, of a nil Share too: an error where JetStream is not
// available to this node, or the cluster writes a log version that it cannot read, so
// that it serves nothing. It does not depend on what the node owns, or a roll-out would
// wait for partitions that have not moved yet.
func (s *Share) Check() error {
	if s == nil { // not made yet, which is another condition's to say
		return nil
	}
	if m := s.members.Load(); m != nil {
		if err := m.check(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreadable == 0 {
		return nil
	}
	return &logversion.UnknownError{Version: s.unreadable, Newest: s.cfg.Newest}
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
	case c.KV == nil || c.Version == nil || c.Log == nil || c.Serve == nil:
		return errors.New("ownership: KV, Version, Log and Serve are required")
	case c.Beat <= 0 || c.Expiry < beatsMissedMin*c.Beat:
		return fmt.Errorf("ownership: expiry %v is less than three beats of %v", c.Expiry, c.Beat)
	}
	return nil
}

// Run serves this node's share until ctx ends; then it drains, takes the heartbeat
// away and returns nil. The heartbeat says what is not drained yet, and is shown until all is, so
// that no one begins with a partition before this node is done with it.
func (s *Share) Run(ctx context.Context) error {
	if err := s.cfg.check(); err != nil {
		return err
	}
	m := newMembers(s.cfg.KV, s.cfg.Service, s.cfg.Node, s.cfg.Beat, s.cfg.Log)
	a := newAssignment(ctx, s.cfg, m.beats.Load)
	s.members.Store(m)
	m.announce(s.announcement(a))
	alive, die := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	told := make(chan signal, 64)
	background.Go(func() { m.show(alive) })
	background.Go(func() { m.listen(alive, told) })
	background.Go(func() { m.sweep(alive) })
	defer func() {
		die()
		background.Wait()
		m.leave()
	}()

	s.follow(ctx, m, told, a)
	clear(a.claims)
	for a.busy() { // ctx has ended, so every Serve is on its way out
		shows := s.announcement(a)
		shows.Leaving = true
		m.announce(shows)
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
	v := newView(s.cfg.Node, m.run, s.cfg.Beat, s.cfg.Expiry)
	due := time.NewTimer(0)
	defer due.Stop()
	unowned := s.cfg.Metrics.Gauge(signals.PartitionsUnowned, s.cfg.Service)
	var is situation
	for {
		changed := false
		select {
		case <-ctx.Done():
			return
		case e := <-a.ended:
			a.forget(e)
			changed = true // it may be wanted again
		case sig := <-told:
			// A pause is noticed before what waited through it is taken.
			v.lose(time.Now(), m.signs())
			v.take(sig, time.Now())
			if sig.node == s.cfg.Node && sig.shows.Run == m.run {
				m.heard()
			}
		case <-due.C:
			v.lose(time.Now(), m.signs())
		}
		m.listenAgain()
		due.Reset(v.dueIn(time.Now()))
		if !v.known() {
			continue
		}
		a.retry()
		changed = a.overdue(time.Now()) || changed
		v.expire(time.Now())
		m.showEvery(v.every())
		v.announces(s.announcement(a))
		version := s.cfg.Version()
		s.readable(version)
		now := situation{v.candidates(version), v.held(), a.claimed(v.shown, v.echoed), v.away && s.cfg.Unfenced}
		if changed || !now.equal(is) {
			s.act(a, is, now, v)
			is = now
		}
		m.announce(s.announcement(a))
		unowned.Set(int64(s.noteUnowned(now.held, a.holding())))
	}
}

// noteUnowned takes in what others and this node serve, and returns how many partitions no one does.
func (s *Share) noteUnowned(held, mine []int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unowned = s.unowned[:0]
	for p := range s.cfg.Count {
		_, theirs := slices.BinarySearch(held, p)
		if _, ours := slices.BinarySearch(mine, p); !theirs && !ours {
			s.unowned = append(s.unowned, p)
		}
	}
	return len(s.unowned)
}

// situation is what decides who serves what.
type situation struct {
	nodes []Candidate
	// held are the partitions that others are not done with, claimed those that this node may begin with.
	held, claimed []int
	away          bool
}

func (s situation) equal(other situation) bool {
	return slices.EqualFunc(s.nodes, other.nodes, Candidate.equal) && slices.Equal(s.held, other.held) &&
		slices.Equal(s.claimed, other.claimed) && s.away == other.away
}

// act brings the assignment in line with the situation.
func (s *Share) act(a *assignment, was, is situation, v *view) {
	if !slices.EqualFunc(is.nodes, was.nodes, Candidate.equal) {
		s.cfg.Log.Info("members changed", "nodes", v.nodes(), "candidates", is.nodes)
	}
	if is.away {
		if !was.away {
			s.cfg.Log.Warn("this node has not received its own heartbeat for longer than others wait: it serves nothing until it does")
		}
		a.suspend()
		s.publish(a.serving())
		return
	}
	whole := a.reconcile(is.nodes, is.held, is.claimed)
	s.publish(a.serving())
	if !whole {
		return
	}
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

// announcement is what this node shows with this assignment.
func (s *Share) announcement(a *assignment) Announcement {
	return Announcement{LogVersion: s.cfg.Newest, Stopped: a.refusals.partitions(), Holds: a.holdingOrClaimed()}
}

// readable notes whether this node reads the cluster's version, and says it when
// that changes.
func (s *Share) readable(version uint32) {
	unreadable := uint32(0)
	if version > s.cfg.Newest {
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

func (s *Share) publish(owned []Served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned = owned
}
