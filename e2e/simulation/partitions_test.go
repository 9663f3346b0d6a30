package simulation

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A tasklist has partitions: triggers of each go to a shard of its own, and so do polls. How many there are is edited while a run goes on, and
// each process hears of it when it does.

// partitionCounts are how many partitions tasklists have.
var partitionCounts = []int{1, 2, 5}

// listed names a tasklist.
type listed struct{ domain, tasklist string }

// spread is how many partitions tasklists have; what is not there has one.
type spread map[listed]int

func (s spread) count(domain, tasklist string) int { return max(1, s[listed{domain, tasklist}]) }

// spreadAll gives tasklists their partitions.
func (m *matching) spreadAll() {
	m.spread = spread{}
	if !m.plan.has(partitionEdits) {
		return
	}
	for _, d := range domains {
		for _, name := range tasklists[d] {
			m.spreadOver(listed{d, name}, partitionCounts[m.dice.IntN(len(partitionCounts))])
		}
	}
}

// editPartitions changes how many partitions some tasklist has.
func (m *matching) editPartitions() {
	d := domains[m.dice.IntN(len(domains))]
	at := listed{d, tasklists[d][m.dice.IntN(shards)]}
	m.spreadOver(at, partitionCounts[m.dice.IntN(len(partitionCounts))])
	m.say("operator", "spreads %s %s over %d partitions", at.domain, at.tasklist, m.spread[at])
	for _, w := range m.parts {
		for _, p := range w.living() {
			p.do(m.dice.upTo(500*time.Millisecond), func() { p.spread = maps.Clone(m.spread) })
		}
	}
}

func (m *matching) spreadOver(at listed, count int) {
	m.spread[at] = count
}

// partition is where a worker polls next: each partition in turn that its tasklist has.
func (k *worker) partition() int { return k.polls % k.m.spread.count(k.domain, k.tasklist) }

// goTo has a poll be for a partition.
func (in *inbox) goTo(partition int) {
	in.partition = partition
	in.shard = in.worker.m.shards[ids.MatchingShard(in.worker.domain, in.worker.tasklist, partition, shards)]
}

// move sends a poll on that a partition gives up; or its frontend is gone, and it is answered empty.
func (p *matchProc) move(all []matchingsim.Move) {
	all = slices.Clone(all)
	p.publish(func() {
		for _, one := range all {
			if p.s.fault(goneWorkers, 40) {
				p.do(p.hop(), func() { p.owner.Put(func(in *matchingsim.Inputs) { in.Unmoved = append(in.Unmoved, one) }) })
				continue
			}
			in := p.m.byPoll[one.Poll]
			if in == nil || in.id != one.Poll || !in.open { // it was answered, or ended with its owner
				continue
			}
			p.m.moves++
			delete(p.m.byPoll, in.id)
			in.from, in.moved, in.back = in.partition, true, false
			in.goTo(one.Partition)
			p.s.say(p.name, "gives %s up to partition %d", in.name, one.Partition)
			in.send()
		}
	})
}

// tellParents has the shards of their parents hear what partitions tell.
func (p *matchProc) tellParents(all []matchingsim.Branch) {
	for _, b := range slices.Clone(all) {
		sh := p.m.shards[ids.MatchingShard(b.Domain, b.Name, ids.ParentPartition(b.Partition), shards)]
		p.publish(func() {
			for _, o := range sh.living() {
				if o.owner != nil && !p.s.fault(lostTriggers, 100) {
					o.do(o.latency(), func() { o.owner.Put(func(in *matchingsim.Inputs) { in.Branches = append(in.Branches, b) }) })
				}
			}
		})
	}
}

// grabbed notes which shard asks for an attempt.
func (c *matchChecker) grabbed(shard uint32, key heldBy) { c.grabs[key] = shard }

// atShard holds that the slots of an attempt are where it was granted, for all owners of history: what says otherwise frees or counts those of
// another shard.
func (c *matchChecker) atShard(w *world, booking []byte, shard int, what string) {
	id, version := ids.TaskID(booking[:len(ids.TaskID{})]), binary.BigEndian.Uint32(booking[len(ids.TaskID{}):])
	token, granted := w.check.holders[attempt{id, version}]
	if by := c.grabs[heldBy{id, token}]; granted && by != uint32(shard)+1 {
		c.m.violated("I8: attempt %d of %s is %s at shard %d, and shard %d has grabbed it", version, c.m.name(id), what, shard, int(by)-1)
	}
	if at := w.accepted[id]; granted && shard != ids.MatchingShard(at.domain, at.tasklist, 0, shards) {
		c.elsewhere++
	}
}

// TestPartitionsAreUsed: what the runs are to show happens in most of those that have partitions: attempts hold slots at other shards than that of
// the first partition, and polls move.
func TestPartitionsAreUsed(t *testing.T) {
	testkit.Slow(t, "simulates many runs")
	runs, used := 0, 0
	for seed := range uint64(12) {
		p := planOf(seed)
		if !p.has(partitionEdits) {
			continue
		}
		w := newWorld(p, false)
		w.run()
		if runs++; w.match.check.elsewhere > 0 && w.match.moves > 0 {
			used++
		}
	}
	if runs == 0 || used*2 < runs {
		t.Errorf("attempts were held elsewhere, and polls moved, in %d of %d runs", used, runs)
	}
}
