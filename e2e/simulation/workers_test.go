package simulation

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
)

const (
	// taskBytes is the size of a task in an answer.
	taskBytes = 100
	// pollRetry is how soon a frontend sends a poll again that was not delivered.
	pollRetry = 100 * time.Millisecond
	// pollGrace is how much longer than its poll a worker waits.
	pollGrace = 2500 * time.Millisecond
)

// worker polls one tasklist, with a frontend at its side.
type worker struct {
	m                *matching
	name             string
	domain, tasklist string
	types            []string
	max              int
	polls            int
	inbox            *inbox
}

// inbox is where a worker waits for the one answer to a poll.
type inbox struct {
	worker *worker
	name   string
	open   bool
	until  time.Duration
	// partition of its tasklist, which is at shard.
	partition int
	shard     *matchShard
	// epoch is the owner that it was sent to, as the poll id.
	epoch, id uint64
	// from is the partition that gave it up, if moved; back: it is to stay there, since the other one has no owner.
	from        int
	moved, back bool
}

// poll asks for work, and again when that is over.
func (k *worker) poll() {
	m := k.m
	if m.home {
		return
	}
	k.polls++
	wait := 5 * time.Second
	if !m.eager {
		wait = m.dice.upTo(wait)
	}
	in := &inbox{worker: k, name: fmt.Sprintf("%s.%d", k.name, k.polls), open: true, until: m.now + wait, partition: k.partition()}
	in.goTo(in.partition)
	k.inbox, m.inboxes[in.name] = in, in
	m.after(in.until+pollGrace-m.now, func() { in.leave(0) })
	if m.fault(goneWorkers, 60) {
		m.after(m.dice.upTo(5*time.Second), func() { in.leave(m.dice.upTo(2 * time.Second)) })
	}
	in.send()
}

// leave ends a poll that has got no answer; the next one is d later.
func (in *inbox) leave(d time.Duration) {
	if in.close() {
		in.worker.m.say(in.worker.name, "leaves %s", in.name)
		in.worker.m.after(d, in.worker.poll)
	}
}

func (in *inbox) close() bool {
	was := in.open
	in.open = false
	delete(in.worker.m.inboxes, in.name)
	delete(in.worker.m.byPoll, in.id)
	return was
}

// send forwards a poll to the owner whose epoch is open, until somebody is there.
func (in *inbox) send() {
	m := in.worker.m
	if !in.open {
		return
	}
	if m.now >= in.until {
		m.deliver(in, nil)
		return
	}
	for _, p := range in.shard.living() {
		if p.owner != nil && p.epoch == in.shard.seen {
			m.polled++
			in.epoch, in.id = p.epoch, m.polled
			m.byPoll[in.id] = in
			poll := matchingsim.Poll{
				Domain: in.worker.domain, Tasklist: in.worker.tasklist, Max: in.worker.max, Types: in.worker.types,
				Partition: in.partition, Moved: in.moved, Back: in.back, ID: in.id, Worker: in.worker.name, WorkerID: in.worker.name, ReplyTo: in.name, JSON: m.dice.chance(500), For: max(0, in.until-m.now),
			}
			m.say(in.worker.name, "polls %s: %d of %v for %v of partition %d in epoch %d", in.name, poll.Max, poll.Types, poll.For, in.partition, p.epoch)
			m.after(m.dice.upTo(3*time.Millisecond), func() {
				p.do(p.latency(), func() { p.owner.Put(func(i *matchingsim.Inputs) { i.Polls = append(i.Polls, poll) }) })
			})
			return
		}
	}
	in.epoch = 0
	if in.moved && !in.back {
		in.goTo(in.from)
		in.back = true
	}
	m.after(pollRetry, in.send)
}

// opened lets frontends know of an open epoch: they end the polls of older ones.
func (m *matching) opened(sh *matchShard, epoch uint64) {
	if epoch <= sh.seen {
		return
	}
	sh.seen = epoch
	for _, k := range m.workers {
		if in := k.inbox; in != nil && in.open && in.shard == sh && in.epoch > 0 && in.epoch < epoch {
			m.after(m.dice.upTo(20*time.Millisecond), func() { m.deliver(in, nil) })
		}
	}
}

// answer takes an answer of matching to its inbox. If there is no subscriber, its sender is informed.
func (m *matching) answer(p *matchProc, a matchingsim.Answer) {
	in := m.inboxes[a.ReplyTo]
	if in != nil {
		m.deliver(in, a.Tasks)
		return
	}
	m.say(p.name, "answers %s with %d tasks, and there is no subscriber", a.ReplyTo, len(a.Tasks))
	if a.ID != 0 {
		p.do(p.hop(), func() { p.owner.Put(func(in *matchingsim.Inputs) { in.Bounced = append(in.Bounced, a.ID) }) })
	}
}

// deliver ends a poll: the worker takes up what it has got, and polls again.
func (m *matching) deliver(in *inbox, tasks [][]byte) {
	if !in.close() {
		return
	}
	for _, data := range tasks {
		id, token := decodeGrant(data)
		m.say(in.worker.name, "gets %s v%d n%d in %s", m.name(id), token.Version, token.Nonce, in.name)
		if w := m.check.handed(in, id, token); w != nil {
			w.askers.work(id, token)
		}
	}
	m.after(m.dice.upTo(200*time.Millisecond), in.worker.poll)
}
