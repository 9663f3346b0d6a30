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

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// beaconBeat is how often a beacon shows its heartbeat: no one takes over from it, so
// no one is in a hurry.
const beaconBeat = time.Second

// Beacon shows a heartbeat for a service that has no partitions, so that it is among
// the members. It is a part for lifecycle.Group.
type Beacon struct {
	Service, Node string
	// KV is the members bucket.
	KV  jetstream.KeyValue
	Log *slog.Logger

	members atomic.Pointer[members]
}

// Check is a condition of being ready, of a nil Beacon too: an error where JetStream is not
// available to this node.
func (b *Beacon) Check() error {
	if b == nil { // not made yet, which is another condition's to say
		return nil
	}
	m := b.members.Load()
	if m == nil {
		return nil
	}
	return m.check()
}

// Run shows the heartbeat until ctx ends, then takes it away.
func (b *Beacon) Run(ctx context.Context) error {
	m := newMembers(b.KV, b.Service, b.Node, pace.Of(beaconBeat), b.Log)
	b.members.Store(m)
	m.announce(Announcement{LogVersion: logversion.Newest()})
	var sweeping sync.WaitGroup
	sweeping.Go(func() { m.sweep(ctx) })
	m.show(ctx)
	sweeping.Wait()
	m.leave()
	return nil
}

// Member is a node of a service, as the members bucket has it.
type Member struct {
	Service, Node string
	Announcement
	// Silent is for how long it has shown no heartbeat, by the server's clock.
	Silent   time.Duration
	revision uint64
}

// deadAfter is how long a member must be silent to be taken for dead. It is longer than its partitions wait for it: a live
// one that is overlooked would be locked out of an upgrade.
const deadAfter = 10 * time.Second

// Alive reports whether the member may still live.
func (m Member) Alive() bool { return m.Silent < deadAfter }

// List is everybody who has shown a heartbeat and did not take it away, sorted by
// service and node. A node that died without a message is in it: see Silent.
func List(ctx context.Context, kv jetstream.KeyValue) ([]Member, error) {
	all, shown, err := listEntries(ctx, kv)
	if err != nil {
		return nil, fmt.Errorf("list the members: %w", err)
	}
	// Both times are the server's: no clock is compared with another's.
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the members: %w", err)
	}
	info, ok := status.(interface{ StreamInfo() *jetstream.StreamInfo })
	if !ok {
		return nil, fmt.Errorf("list the members: %T has no time", status)
	}
	for i := range all {
		all[i].Silent = max(info.StreamInfo().TimeStamp.Sub(shown[i]), 0)
	}
	slices.SortFunc(all, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Node, b.Node))
	})
	return all, nil
}

// listEntries reads all heartbeats and when each was shown.
func listEntries(ctx context.Context, kv jetstream.KeyValue) (all []Member, shown []time.Time, err error) {
	w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, nil, err
	}
	defer stopWatch(w)
	for {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, nil, errors.New("the watch ended")
			case e == nil:
				return all, shown, nil
			}
			if service, node, ok := topology.MemberOfKey(e.Key()); ok {
				all = append(all, Member{Service: service, Node: node, Announcement: readAnnouncement(e.Value()), revision: e.Revision()})
				shown = append(shown, e.Created())
			}
		}
	}
}
