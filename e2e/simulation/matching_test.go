package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
)

const (
	// shards is how many matching shards there are.
	shards = 2
	// rival is a domain that has no tasks, and cancels those of others.
	rival = "rival"
	// flood is the domain that has many tasks if there are floods, and no worker while others have tasks; or one of its tasklists has none.
	flood = "mall"
	// free is a type without a limit, one and few have one of 1 and 3.
	free, one, few = "free", "one", "few"
	// workersEach is how many workers poll each tasklist.
	workersEach = 2
)

// task says where a task belongs.
type task struct{ domain, tasklist, typ string }

// domains, and their tasklists: the first partition of one at each shard.
var (
	domains   = []string{"shop", flood}
	tasklists = func() map[string][shards]string {
		all := map[string][shards]string{}
		for _, d := range domains {
			var at [shards]string
			for i := 0; slices.Contains(at[:], ""); i++ {
				name := fmt.Sprint("list-", i)
				if m := ids.MatchingShard(d, name, 0, shards); at[m] == "" {
					at[m] = name
				}
			}
			all[d] = at
		}
		return all
	}()
	types = []string{free, one, few}
)

// matching is all shards with their owners, the tables, and who polls.
type matching struct {
	*sim
	shards [shards]*matchShard
	nodes  map[string]*tableNode
	// limits is what operators have set, changes when.
	limits  limits
	changes []limitChange
	// spread is how many partitions operators have set.
	spread  spread
	workers []*worker
	// inboxes by name, byPoll by the number of their poll's last sending, of polled. moves counts the polls that were sent on.
	inboxes map[string]*inbox
	byPoll  map[uint64]*inbox
	polled  uint64
	moves   int
	born    int
	// hintsLost: some hints of history were lost.
	hintsLost bool
	// home: workers do not poll any more.
	home bool
	// eager: workers take many tasks at once, and wait long.
	eager bool
	check *matchChecker
}

// matchShard is one shard: its epochs in the bucket, its owners, its stream of hints.
type matchShard struct {
	m           *matching
	number      int
	taken, open uint64
	// seen is the open epoch that frontends know of.
	seen   uint64
	owners []*matchProc
	stream hintStream
}

// limits are those of types, by domain.
type limits map[string]map[string]int

func (l limits) copy() limits {
	c := limits{}
	for d, types := range l {
		c[d] = maps.Clone(types)
	}
	return c
}

type limitChange struct {
	at           time.Duration
	domain, name string
	max          int
}

func newMatching(s *sim) *matching {
	m := &matching{sim: s, nodes: map[string]*tableNode{}, limits: limits{}, inboxes: map[string]*inbox{}, byPoll: map[uint64]*inbox{}}
	m.check = newMatchChecker(m)
	for i := range m.shards {
		sh := &matchShard{m: m, number: i}
		sh.stream = hintStream{shard: sh, pending: map[uint64]*hintMessage{}}
		m.shards[i] = sh
	}
	for _, d := range domains {
		m.nodes[d] = &tableNode{m: m, tables: matchingsim.NewTables()}
		m.limits[d] = map[string]int{}
		m.setLimit(d, one, 1)
		m.setLimit(d, few, 3)
		m.limitGroups(d)
	}
	m.spreadAll()
	return m
}

// Names of limits besides those of types: of the domain, of a tasklist, and of the types one and few together.
const (
	wide       = "*"
	ofTasklist = "#"
	shared     = "+"
)

// limitOf is the limit of a name: what it covers.
func limitOf(name string) matchingsim.Limit {
	if of, each := strings.CutSuffix(name, perGroup); each {
		l := limitOf(of)
		l.Ref, l.PerGroup = matchingsim.PerGroupRef(l.Ref), true
		return l
	}
	switch name[:1] {
	case wide:
		return matchingsim.Limit{Ref: matchingsim.DomainRef, Wide: true}
	case ofTasklist:
		return matchingsim.Limit{Ref: matchingsim.TasklistRef(name[1:]), Tasklist: name[1:]}
	case shared:
		both := []string{one, few}
		slices.Sort(both)
		return matchingsim.Limit{Ref: matchingsim.SharedRef("both"), Types: both}
	}
	return matchingsim.Limit{Ref: matchingsim.TypeRef(name), Types: []string{name}}
}

// covers tells whether attempts of a task need a slot of a limit.
func covers(l matchingsim.Limit, at task) bool {
	return l.Wide || l.Tasklist == at.tasklist || slices.Contains(l.Types, at.typ)
}

func (m *matching) setLimit(domain, name string, limit int) {
	m.limits[domain][name] = limit
	m.changes = append(m.changes, limitChange{m.now, domain, name, limit})
}

// someTask says where a new task belongs. Scripts have all of theirs in one place.
func (m *matching) someTask() task {
	if m.plan.tasks == 0 {
		return task{domains[0], tasklists[domains[0]][0], free}
	}
	d := domains[m.dice.IntN(len(domains))]
	if m.plan.has(floods) && m.dice.chance(500) {
		d = flood
	}
	return task{d, tasklists[d][m.dice.IntN(shards)], types[m.dice.IntN(len(types))]}
}

// another is a task of the same domain, and of another tasklist perhaps.
func (m *matching) another(at task) task {
	other := at
	other.tasklist = tasklists[at.domain][m.dice.IntN(shards)]
	if m.plan.listFloods(other) {
		return at
	}
	return other
}

func (m *matching) begin() {
	for _, sh := range m.shards {
		m.after(m.dice.between(80*time.Millisecond, 200*time.Millisecond), sh.spawnIfNone)
	}
	for _, d := range domains {
		for _, list := range tasklists[d] {
			for i := range workersEach {
				k := &worker{m: m, name: fmt.Sprintf("worker-%d", len(m.workers)+1), domain: d, tasklist: list, max: 1 + m.dice.IntN(8)}
				if m.eager {
					k.max = 8
				}
				if i > 0 { // the first one takes all
					k.types = types[m.dice.IntN(len(types)):]
				}
				m.workers = append(m.workers, k)
				if !m.plan.floods(task{domain: d, tasklist: list}) {
					m.after(m.dice.upTo(100*time.Millisecond), k.poll)
				}
			}
		}
	}
}

// serveFlood lets the workers come that a flood has had to do without.
func (m *matching) serveFlood() {
	for _, k := range m.workers {
		if m.plan.floods(task{domain: k.domain, tasklist: k.tasklist}) {
			m.after(m.dice.upTo(100*time.Millisecond), k.poll)
		}
	}
}

// goHome has workers poll no more.
func (m *matching) goHome() { m.home = true }

// hints takes what history tells to the streams of the shards.
func (m *matching) hints(w *world, op *historysim.Op) {
	var out [shards]matchingsim.Hints
	for i := range op.Releases {
		r := &op.Releases[i]
		for b := r.Packed; len(b) > 0; b = b[ids.BookingBytes:] {
			w.check.released(string(b[:ids.BookingBytes]))
			m.check.atShard(w, b, r.Shard, "released")
		}
		out[r.Shard].Releases = append(out[r.Shard].Releases, matchingsim.Release{
			Domain: r.Domain, Type: r.Type, Path: refs(r.Limits), Bookings: slices.Clone(r.Packed),
		})
	}
	for i := range op.Triggers {
		t := &op.Triggers[i]
		if t.Shard != ids.MatchingShard(t.Domain, t.Tasklist, int(t.Partition), shards) {
			m.violated("triggers of partition %d of %s go to shard %d", t.Partition, t.Tasklist, t.Shard)
		}
		groups, ok := ids.Groups(t.Groups, t.GroupAt, len(t.Packed)/ids.TriggerBytes)
		if !ok {
			m.violated("the groups of triggers of %s %s make no sense: %q %v", t.Tasklist, t.Type, t.Groups, t.GroupAt)
		}
		out[t.Shard].Triggers = append(out[t.Shard].Triggers, matchingsim.Triggers{
			Tasklist: matchingsim.Tasklist{Domain: t.Domain, Name: t.Tasklist, Partition: int(t.Partition)},
			Column:   matchingsim.Column{Priority: int(t.Priority), Type: t.Type},
			ReadyAt:  t.ReadyAt * 1000, Packed: slices.Clone(t.Packed), Groups: groups, Cost: int(t.Cost),
		})
	}
	for i := range out {
		if len(out[i].Releases)+len(out[i].Triggers) > 0 {
			m.hint(m.shards[i], out[i])
		}
	}
}

// hint stores one message of hints, or loses it, or stores it late or twice.
func (m *matching) hint(sh *matchShard, h matchingsim.Hints) {
	if m.fault(lostTriggers, 100) {
		m.hintsLost = true
		m.say("hints", "of shard %d are lost", sh.number)
		return
	}
	d := m.dice.upTo(20 * time.Millisecond)
	if m.fault(lostTriggers, 100) {
		d = m.dice.upTo(5 * time.Second)
	}
	m.after(d, func() { sh.stream.add(h) })
	if m.fault(lostTriggers, 100) {
		m.after(m.dice.upTo(2*time.Second), func() { sh.stream.add(h) })
	}
}

func refs(p *historysim.Path) (all []matchingsim.Ref) {
	for _, r := range p.Refs() {
		all = append(all, matchingsim.Ref(r))
	}
	return all
}

// calm ends what is wrong with shards and tables.
func (m *matching) calm() {
	for _, d := range domains {
		m.nodes[d].away, m.nodes[d].slow = 0, 0
	}
	for _, sh := range m.shards {
		if all := sh.living(); len(all) == 1 && all[0].owner != nil && m.plan.faults&changesOfMatching == 0 && all[0].wall == 0 {
			if m.hintsLost {
				all[0].owner.Put(func(in *matchingsim.Inputs) { in.HintsLost = true })
			}
			continue
		}
		for _, p := range sh.living() {
			p.kill()
		}
		sh.spawn()
	}
}

// trouble makes what no single operation decides.
func (m *matching) trouble() {
	for _, sh := range m.shards {
		for _, p := range sh.living() {
			switch {
			case m.fault(matchingPauses, 30):
				p.pause(m.pauseFor())
			case m.fault(matchingKills, 15):
				p.kill()
				sh.replace()
			case m.fault(matchingDrains, 15) && p.owner != nil:
				m.say(p.name, "drains")
				p.owner.Drain()
			}
		}
		if m.fault(matchingRivals, 20) && len(sh.living()) < 3 {
			sh.spawn()
		}
	}
	for _, d := range domains {
		m.nodes[d].trouble(d)
	}
	if m.fault(limitEdits, 30) {
		d := domains[m.dice.IntN(len(domains))]
		names := slices.Concat([]string{wide, shared, ofTasklist + tasklists[d][0]}, types, m.perGroups(d))
		m.edit(d, names[m.dice.IntN(len(names))], m.dice.IntN(4))
	}
	if m.fault(partitionEdits, 60) {
		m.editPartitions()
	}
}

// edit changes a limit. Each owner hears of it a little later.
func (m *matching) edit(d, name string, limit int) {
	m.setLimit(d, name, limit)
	m.say("operator", "limits %s %s to %d", d, name, limit)
	for _, sh := range m.shards {
		for _, p := range sh.living() {
			p.do(m.dice.upTo(500*time.Millisecond), func() {
				p.limits = m.limits.copy()
				if p.owner != nil {
					p.owner.Put(func(in *matchingsim.Inputs) { in.Limits = append(in.Limits, d) })
				}
			})
		}
	}
}

func (m *matching) powerCut() {
	for _, sh := range m.shards {
		for _, p := range sh.living() {
			p.kill()
		}
		sh.replace()
	}
}

func (sh *matchShard) living() (all []*matchProc) {
	for _, p := range sh.owners {
		if !p.dead {
			all = append(all, p)
		}
	}
	return all
}

// replace begins a new owner a little later, if there is none by then.
func (sh *matchShard) replace() {
	sh.m.after(sh.m.dice.upTo(3*time.Second), sh.spawnIfNone)
}

func (sh *matchShard) spawnIfNone() {
	if len(sh.living()) == 0 {
		sh.spawn()
	}
}
