package table

import "maps"

// presence is what one shard has said about a limit that counts per group.
type presence struct {
	// seq is that of its last call.
	seq Seq
	// counted is the count with which it became complete; zero = it is not. Its entries of older ones are void.
	counted Seq
}

// perGroup is a limit that counts per group, of which nothing is kept but who is complete, and the limits of groups that are
// in use.
type perGroup struct {
	shards map[int]presence
	groups map[Ref]*limit
}

func newPerGroup() *perGroup { return &perGroup{shards: map[int]presence{}, groups: map[Ref]*limit{}} }

// overtaken tells whether a later call has named it.
func (p *perGroup) overtaken(c *Call) bool { return c.Seq.compare(p.shards[c.Shard].seq) <= 0 }

// say takes in what a shard says.
func (p *perGroup) say(c *Call, s Stance) stand {
	at := p.shards[c.Shard]
	at.seq = c.Seq
	if s.PerGroup.Complete {
		at.counted = Seq{c.Seq.Epoch, s.PerGroup.Count}
	}
	p.shards[c.Shard] = at
	complete := 0
	for _, one := range p.shards {
		if one.counted != (Seq{}) {
			complete++
		}
	}
	return stand{Stance: s, groups: p, restoring: complete < c.Shards}
}

// limit finds or makes that of one group, without what is void or over.
func (p *perGroup) limit(ref Ref, now int64) *limit {
	l := findOrMake(p.groups, ref, newLimit)
	maps.DeleteFunc(l.entries, func(shard int, e entry) bool {
		return e.held == 0 || e.until <= now || e.seq.compare(p.shards[shard].counted) < 0
	})
	return l
}

// drop forgets the limit of a group of which no shard holds a slot, or waits for one.
func (p *perGroup) drop(ref Ref) {
	l := p.groups[ref]
	for _, e := range l.entries {
		if e.held > 0 {
			return
		}
	}
	if len(l.line) == 0 {
		delete(p.groups, ref)
	}
}
