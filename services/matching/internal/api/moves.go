package api

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
)

const (
	// movesMax is for how many messages it is remembered which polls they gave up: the word that no one heard one comes within a
	// round trip.
	movesMax = 1024
	// movesAgain is how old a message may be that is sent again where the connection broke, with each round trip: a frontend may be
	// connected later. So the server's word that no one hears such a repeat says nothing, and is not asked for.
	movesAgain = 5 * time.Second
)

// moves are polls that were given up, by the message that said so, until no word of it can come. It is safe for concurrent use.
type moves struct {
	mu   sync.Mutex
	last uint64
	sent []sentMoves
}

// sentMoves is one message.
type sentMoves struct {
	number uint64
	to     string
	data   []byte
	polls  []uint64
	at     time.Time
}

// add numbers a message.
func (m *moves) add(to string, data []byte, polls []uint64) (number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	if m.sent = append(m.sent, sentMoves{m.last, to, data, polls, time.Now()}); len(m.sent) > movesMax {
		m.sent = slices.Delete(m.sent, 0, 1)
	}
	return m.last
}

// take returns the polls of a message, once.
func (m *moves) take(n uint64) []uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.sent, func(one sentMoves) bool { return one.number == n })
	if i < 0 {
		return nil
	}
	polls := m.sent[i].polls
	m.sent = slices.Delete(m.sent, i, i+1)
	return polls
}

// before are the messages that may have been lost with a connection that broke, in order. A frontend that has one already knows its polls by other names.
func (m *moves) before(broke time.Time) []sentMoves {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.sent), func(one sentMoves) bool { return !one.at.Before(broke) || time.Since(one.at) >= movesAgain })
}

// givenUp is what one frontend gets back.
type givenUp struct {
	numbers []uint64
	polls   []*rpcv1.MovedPoll
}

// giveUp forgets polls that are given up, and returns them by the frontend that sent them.
func (a *answered) giveUp(all []tree.Move) map[string]*givenUp {
	a.mu.Lock()
	defer a.mu.Unlock()
	by := map[string]*givenUp{}
	for _, m := range all {
		one, found := a.open[m.Poll]
		if !found {
			continue
		}
		delete(a.open, m.Poll)
		g := by[one.to]
		if g == nil {
			g = &givenUp{}
			by[one.to] = g
		}
		g.numbers = append(g.numbers, m.Poll)
		g.polls = append(g.polls, &rpcv1.MovedPoll{Id: one.id, TasklistPartition: int32(m.Partition)})
	}
	return by
}

// Moves implements shard.Outbox.
func (p *Port) Moves(all []tree.Move) {
	by := p.answered.giveUp(all)
	for _, to := range slices.Sorted(maps.Keys(by)) {
		for part := range slices.Chunk(by[to].polls, answeredMax) {
			numbers := by[to].numbers[:len(part)]
			by[to].numbers = by[to].numbers[len(part):]
			data, err := (&rpcv1.PollsAnswered{Moved: part}).MarshalVT()
			if err != nil {
				p.failed("give polls up", err)
				continue
			}
			reply := p.inbox + ".m." + strconv.FormatUint(p.moves.add(to, data, numbers), 36)
			p.failed("give polls up", p.NATS.PublishMsg(&nats.Msg{Subject: to, Reply: reply, Data: data}))
		}
	}
}

// unmoved reads the server's word that no one heard that polls were given up.
func (p *Port) unmoved(s *shard.Shard, m *nats.Msg) {
	if m.Header.Get("Status") != "503" {
		return
	}
	n, err := strconv.ParseUint(lastToken(m.Subject), 36, 64)
	if err != nil {
		return
	}
	if polls := p.moves.take(n); len(polls) > 0 {
		s.Put(func(in *match.Inputs) { in.Unmoved = append(in.Unmoved, polls...) })
	}
}

// branchesBytesMax is about how large a message of branches may be.
const branchesBytesMax = 256 << 10

// Branches implements shard.Outbox: one message to each shard of parents.
func (p *Port) Branches(all []tree.Branch) {
	by, sizes := map[int]*rpcv1.Branches{}, map[int]int{}
	send := func(shard int) {
		p.hint(topology.HintBranch(shard), by[shard])
		delete(by, shard)
		sizes[shard] = 0
	}
	for i := range all {
		m := branchOf(&all[i])
		shard := ids.MatchingShard(m.Domain, m.Tasklist, ids.ParentPartition(all[i].Partition), p.Partitioning.Matching)
		if by[shard] == nil {
			by[shard] = &rpcv1.Branches{}
		}
		by[shard].Branches = append(by[shard].Branches, m)
		if sizes[shard] += m.SizeVT(); sizes[shard] >= branchesBytesMax {
			send(shard)
		}
	}
	for _, shard := range slices.Sorted(maps.Keys(by)) {
		send(shard)
	}
}

func branchOf(b *tree.Branch) *rpcv1.Branch {
	m := &rpcv1.Branch{Domain: b.Domain, Tasklist: b.Name, TasklistPartition: int32(b.Partition), Present: b.Present}
	for _, w := range b.Wanted {
		m.Wanted = append(m.Wanted, &rpcv1.Wanted{Type: w.Type, Priority: int32(w.Priority), ReadyAtUs: w.ReadyAt, Limited: w.Limited, Triggers: int64(w.Triggers)})
	}
	return m
}

// branches reads what partitions of tasklists tell their parents.
func branches(in *match.Inputs, m *rpcv1.Branches) {
	for _, one := range m.Branches {
		b := tree.Branch{
			Tasklist: table.Tasklist{Domain: one.Domain, Name: one.Tasklist, Partition: int(one.TasklistPartition)},
			Present:  one.Present,
		}
		for _, w := range one.Wanted {
			b.Wanted = append(b.Wanted, tree.Wanted{
				Column: table.Column{Priority: int(w.Priority), Type: w.Type}, ReadyAt: w.ReadyAtUs, Limited: w.Limited, Triggers: int(w.Triggers),
			})
		}
		in.Branches = append(in.Branches, b)
	}
}

// loadsMax is how many partitions one message tells of.
const loadsMax = 1000

// Loads implements shard.Outbox.
func (p *Port) Loads(all []tree.Load) {
	for part := range slices.Chunk(all, loadsMax) {
		m := &rpcv1.TasklistLoad{}
		for _, l := range part {
			m.Partitions = append(m.Partitions, &rpcv1.PartitionLoad{
				Domain: l.Domain, Tasklist: l.Name, TasklistPartition: int32(l.Partition), Triggers: int64(l.Triggers), PerSecond: l.PerSecond, Types: l.Types,
			})
		}
		p.hint(topology.HintTasklistLoad, m)
	}
}
