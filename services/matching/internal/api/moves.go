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

// movesMax is how many polls that were given up are remembered, or those of one message: the server reports within a round trip that no
// one received a message.
const movesMax = 10_000

// moves are the polls that were given up last, by the message that said so. It is safe for concurrent use.
type moves struct {
	mu sync.Mutex
	// sent are those of the messages from first to last, polls counts them.
	sent        map[uint64][]tree.Move
	first, last uint64
	polls       int
}

// add numbers a message.
func (m *moves) add(polls []tree.Move) (number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.sent[m.last] = polls
	for m.polls += len(polls); m.polls > movesMax && m.first < m.last; m.first++ {
		m.polls -= len(m.sent[m.first])
		delete(m.sent, m.first)
	}
	return m.last
}

// take returns the polls of a message, once.
func (m *moves) take(n uint64) []tree.Move {
	m.mu.Lock()
	defer m.mu.Unlock()
	polls := m.sent[n]
	m.polls -= len(polls)
	delete(m.sent, n)
	return polls
}

// givenUp is what one frontend gets back.
type givenUp struct {
	moves []tree.Move
	polls []*rpcv1.MovedPoll
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
		g.moves = append(g.moves, m)
		g.polls = append(g.polls, &rpcv1.MovedPoll{Id: one.id, TasklistPartition: int32(m.Partition)})
	}
	return by
}

// Moves implements shard.Outbox.
func (p *Port) Moves(all []tree.Move) {
	by := p.answered.giveUp(all)
	for _, to := range slices.Sorted(maps.Keys(by)) {
		for part := range slices.Chunk(by[to].polls, answeredMax) {
			moves := by[to].moves[:len(part)]
			by[to].moves = by[to].moves[len(part):]
			data, err := (&rpcv1.PollsAnswered{Moved: part}).MarshalVT()
			if err != nil {
				p.failed("give polls up", err)
				continue
			}
			reply := p.inbox + ".m." + strconv.FormatUint(p.moves.add(moves), 36)
			p.sendMoves(&nats.Msg{Subject: to, Reply: reply, Data: data}, time.Now().Add(movesSentFor))
		}
	}
}

// Polls that are given up while there is no connection are sent once there is one, for as long as a frontend waits for the answer of a poll.
const movesSentFor, movesAgain = 5 * time.Second, 250 * time.Millisecond

// sendMoves sends polls that were given up. Nothing of a message that fails has been sent.
func (p *Port) sendMoves(m *nats.Msg, until time.Time) {
	if err := p.NATS.PublishMsg(m); err != nil && time.Now().Before(until) && !p.NATS.IsClosed() {
		time.AfterFunc(movesAgain, func() { p.sendMoves(m, until) })
	} else {
		p.failed("give polls up", err)
	}
}

// unmoved reads the server's report that no one received polls that were given up.
func (p *Port) unmoved(s *shard.Shard, m *nats.Msg) {
	if n, ok := undelivered(m); ok {
		s.Put(func(in *match.Inputs) { in.Unmoved = append(in.Unmoved, p.moves.take(n)...) })
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
