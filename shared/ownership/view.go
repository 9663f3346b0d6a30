package ownership

import (
	"maps"
	"slices"
	"time"
)

// view is who is alive, as far as this node can tell. It is pure: times come in.
type view struct {
	self string
	// run is this run of the program: a heartbeat of the same name with another one
	// is of a namesake, or of the run before.
	run          uint64
	beat, expiry time.Duration
	// peers are the others.
	peers map[string]*peer
	// mine is what this node announces now.
	mine Announcement
	// loaded: all that was in the bucket at the beginning is known.
	loaded bool
	// echo is when this node last heard itself: until then, the view is true. echoed is
	// the number of that heartbeat, echoDate its date by the server, shown what it held, and shownEvery how often it said that there is one.
	echo       time.Time
	echoed     uint64
	echoDate   time.Time
	shown      []int
	shownEvery time.Duration
	// away: others may believe this node dead, and it has not heard a heartbeat since that it
	// began to show later, the one of number back or after.
	away bool
	back uint64
	// looked is when that was last looked into.
	looked time.Time
}

// peer is another node.
type peer struct {
	revision uint64
	// date is the server's of its last heartbeat; seen is this node's clock's, zero until
	// it can be computed.
	date, seen time.Time
	shows      Announcement
}

func newView(self string, run uint64, beat, expiry time.Duration) *view {
	return &view{self: self, run: run, beat: beat, expiry: expiry, peers: map[string]*peer{}}
}

// every is how often this node shows its heartbeat: half as often while it knows of no other node.
func (v *view) every() time.Duration {
	if len(v.peers) == 0 {
		return 2 * v.beat
	}
	return v.beat
}

// saidEvery is every, or less if no one has heard yet that it is longer.
func (v *view) saidEvery() time.Duration { return min(v.every(), v.shownEvery) }

// waits is for how long others believe a node alive that shows its heartbeat so often.
func (v *view) waits(every time.Duration) time.Duration { return max(v.expiry, beatsMissedMin*every) }

// announces notes what this node announces.
func (v *view) announces(a Announcement) { v.mine = a }

// known: it is known who is alive. Not knowing the others, this node would take
// everything; and without its own echo, it does not know the dead from the living.
func (v *view) known() bool { return v.loaded && !v.echo.IsZero() }

// take notes what the watch reported.
func (v *view) take(s signal, now time.Time) {
	switch {
	case s.loaded:
		v.loaded = true
	case s.node == v.self:
		// This one's own heartbeat may be removed by a namesake; it is alive all the same.
		if !s.left && s.shows.Run == v.run && s.shows.Beat > v.echoed {
			v.hear(s, now)
		}
	case s.left:
		if p := v.peers[s.node]; p != nil && p.revision < s.revision {
			delete(v.peers, s.node)
		}
	default:
		v.heard(s, now)
	}
}

// hear notes this node's own heartbeat.
func (v *view) hear(s signal, now time.Time) {
	first, deaf := v.echo.IsZero(), now.Sub(v.echo) > v.expiry/2
	v.echo, v.echoed, v.echoDate, v.shown = now, s.shows.Beat, s.date, s.shows.Holds
	v.shownEvery = s.shows.every()
	v.away = v.away && s.shows.Beat < v.back
	for _, p := range v.peers {
		switch {
		case first:
			p.seen = v.local(p.date)
		case deaf: // that the others were not heard says nothing about them
			p.seen = now
		}
	}
}

// heard notes a heartbeat of another node. A heartbeat that was known before does not count again:
// a watch that starts again replays it.
func (v *view) heard(s signal, now time.Time) {
	p := v.peers[s.node]
	switch {
	case p == nil:
		p = &peer{}
		v.peers[s.node] = p
	case s.revision <= p.revision:
		return
	}
	p.revision, p.date, p.shows = s.revision, s.date, s.shows
	switch {
	case !s.replayed:
		p.seen = now
	case v.echo.IsZero():
		p.seen = time.Time{} // dated by the first echo
	default:
		p.seen = v.local(s.date)
	}
}

// local is a date of the server by this node's clock: as long before its own echo as
// the server says. No clock is compared with another's.
func (v *view) local(date time.Time) time.Time {
	return v.echo.Add(-max(0, v.echoDate.Sub(date)))
}

// expire forgets who was not heard of for too long, unless this node is deaf.
func (v *view) expire(now time.Time) {
	if now.Sub(v.echo) > v.expiry/2 {
		return
	}
	maps.DeleteFunc(v.peers, func(_ string, p *peer) bool { return now.After(v.expiresAt(p)) })
}

// expiresAt is until when a peer is believed alive.
func (v *view) expiresAt(p *peer) time.Time { return p.seen.Add(v.waits(p.shows.every())) }

// dueIn is after how long to look again though nothing is reported: when the first peer expires, and often while this node's own heartbeat is late.
func (v *view) dueIn(now time.Time) time.Duration {
	at := v.echo.Add(2 * v.saidEvery())
	for _, p := range v.peers {
		if ends := v.expiresAt(p); ends.Before(at) {
			at = ends
		}
	}
	return max(at.Sub(now), v.beat/4)
}

// signs are what is known of this node's heartbeats besides their echo.
type signs struct {
	// beats is how many it has begun to show.
	beats uint64
	// taken is when the last one began to be shown that the server took, refused when the last
	// one found no leader of the bucket; zero = none.
	taken, refused time.Time
}

// leaderlessMax is how long a node takes a bucket without a leader to be silent for all, and
// not for it alone: NATS elects one within 9 s.
const leaderlessMax = 15 * time.Second

// lose notes whether others may believe this node dead: it shows no heartbeats, as after a stop, or
// is cut off. One that the server took is heard by others. While the bucket has no
// leader no one hears anybody, and no one takes anything over. A node that was lost is
// there again when it hears a heartbeat that it showed since.
func (v *view) lose(now time.Time, s signs) {
	waits := v.waits(v.saidEvery())
	stopped := !v.looked.IsZero() && now.Sub(v.looked) > waits // whatever has been heard or shown since it goes on
	v.looked = now
	if v.away || !v.known() {
		return
	}
	heard := v.echo
	if s.taken.After(heard) {
		heard = s.taken
	}
	silent := now.Sub(heard)
	if !stopped && (silent <= waits || silent <= leaderlessMax && now.Sub(s.refused) <= waits) {
		return
	}
	v.away, v.back = true, s.beats+1
}

// candidates are the nodes alive that can read what a cluster of this version
// writes (I13), and that do not leave, sorted.
func (v *view) candidates(version uint32) []Candidate {
	var all []Candidate
	for _, node := range v.nodes() {
		shows := v.mine
		if node != v.self {
			shows = v.peers[node].shows
		}
		if shows.LogVersion >= version && !shows.Leaving {
			all = append(all, Candidate{Node: node, Refuses: shows.Stopped})
		}
	}
	return all
}

// held are the partitions that others are not done with, sorted.
func (v *view) held() []int {
	var all []int
	for _, p := range v.peers {
		all = append(all, p.shows.Holds...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// nodes is everybody alive, sorted, this one always among them.
func (v *view) nodes() []string {
	all := append(slices.Collect(maps.Keys(v.peers)), v.self)
	slices.Sort(all)
	return all
}
