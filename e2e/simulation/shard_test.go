package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
)

// triggerBytes is the size of one packed trigger.
const triggerBytes = ids.TriggerBytes

// matchProc is one process with the owner of a matching shard in it.
type matchProc struct {
	host
	m     *matching
	shard *matchShard
	// owner is nil until it has an epoch.
	owner  *matchingsim.Owner
	epoch  uint64
	limits limits
	// arrivesAt is when the last thing arrives that it has published; what would arrive after cutAt, when
	// it was killed, does not.
	arrivesAt, cutAt time.Duration
}

func (sh *matchShard) spawn() {
	m := sh.m
	m.born++
	p := &matchProc{host: m.newHost(fmt.Sprintf("match-%d.%d", sh.number, m.born), matchingPauses), m: m, shard: sh}
	sh.owners = append(slices.DeleteFunc(sh.owners, func(o *matchProc) bool { return o.dead }), p)
	m.say(p.name, "starts, wall clock %+v", p.wall)
	p.takeEpoch()
}

// takeEpoch raises the shard's epoch by a compare-and-set.
func (p *matchProc) takeEpoch() {
	p.s.after(p.latency(), func() {
		found := p.shard.taken
		p.do(p.latency(), func() {
			answered := false
			p.do(timeout, func() {
				if !answered {
					answered = true
					p.takeEpoch() // no one knows whether this one has it
				}
			})
			p.s.after(p.latency(), func() {
				ok := p.shard.taken == found
				if ok {
					p.shard.took(found + 1)
				}
				if p.s.fault(unknownOutcomes, 40) {
					return
				}
				p.do(p.latency(), func() {
					switch {
					case answered:
						return
					case ok:
						p.begin(found + 1)
					default:
						p.takeEpoch()
					}
					answered = true
				})
			})
		})
	})
}

// took raises the epoch. Owners of older ones hear of it some time.
func (sh *matchShard) took(epoch uint64) {
	sh.taken = epoch
	for _, p := range sh.living() {
		d := sh.m.dice.upTo(50 * time.Millisecond)
		if sh.m.fault(reordering, 300) {
			d = sh.m.dice.upTo(5 * time.Second)
		}
		p.do(d, func() {
			if p.owner != nil && p.epoch < epoch {
				p.owner.Kill()
				p.Ended("a later epoch is taken")
			}
		})
	}
}

// begin begins the ownership of an epoch.
func (p *matchProc) begin(epoch uint64) {
	p.epoch, p.limits = epoch, p.m.limits.copy()
	p.s.say(p.name, "takes epoch %d", epoch)
	p.owner = matchingsim.New(matchingsim.Config{
		Shard: p.shard.number, Shards: shards, Partitions: len(p.s.parts), Epoch: epoch, Seed: p.s.dice.Uint64(),
		AnswerBytesMax: cmp.Or(p.s.plan.answer, 1<<20), PollsMax: 1000, GrabEventsMax: cmp.Or(p.s.plan.batch, 1000), GrabsInFlight: 1 + p.shard.number%2, PopMax: 100,
	}, p, p)
	p.shard.stream.deliver()
}

// kill ends the process as SIGKILL does: the last of what it has published is not sent.
func (p *matchProc) kill() {
	p.dead = true
	p.cutAt = p.s.now + 1 + p.s.dice.upTo(4*time.Millisecond)
	p.s.say(p.name, "is killed")
	if p.owner != nil {
		p.owner.Kill()
	}
}

// Partitions is part of matchingsim.Catalog.
func (p *matchProc) Partitions(domain, tasklist string) int {
	return p.m.spread.count(domain, tasklist)
}

// Scales is part of matchingsim.Catalog. Who reports, and is remembered, changes nothing of what happens to a task.
func (p *matchProc) Scales(_, tasklist string) bool {
	return len(tasklist)%2 == 0
}

// Strict is part of matchingsim.Catalog.
func (p *matchProc) Strict(_, tasklist string) bool { return len(tasklist)%2 == 0 }

// Weights is part of matchingsim.Catalog.
func (p *matchProc) Weights(string) map[string]float64 { return weights }

// GroupLimits is part of matchingsim.Catalog.
func (p *matchProc) GroupLimits(string) map[string]int { return groupMax }

// PausedGroups is part of matchingsim.Catalog.
func (p *matchProc) PausedGroups(string) map[string]bool { return nil }

// Limits is part of matchingsim.Catalog.
func (p *matchProc) Limits(domain string) (all []matchingsim.Limit) {
	for name, most := range p.limits[domain] {
		if one := limitOf(name); most > 0 {
			one.Max = most
			all = append(all, one)
		}
	}
	all = append(all, p.m.rates(domain)...)
	slices.SortFunc(all, func(a, b matchingsim.Limit) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return all
}

// Now is part of matchingsim.Host.
func (p *matchProc) Now() matchingsim.Now {
	return matchingsim.Now{MS: p.wallMS(), Mono: p.mono() + time.Hour}
}

// After is part of matchingsim.Host.
func (p *matchProc) After(d time.Duration, do func()) {
	p.do(time.Duration(float64(d)/p.rate)+p.s.dice.upTo(2*time.Millisecond)+1, do)
}

// Ended is part of matchingsim.Host.
func (p *matchProc) Ended(why string) {
	p.s.say(p.name, "ends: %s", why)
	p.dead = true
	p.shard.replace()
}

// hop is how long something is on its way between the process and the server. Matching takes for received
// what no one has complained of in 250 ms.
func (p *matchProc) hop() time.Duration {
	if p.s.fault(reordering, 60) {
		return p.s.dice.upTo(100 * time.Millisecond)
	}
	return p.s.dice.between(200*time.Microsecond, 3*time.Millisecond)
}

// publish sends something: it arrives behind what was sent before.
func (p *matchProc) publish(arrive func()) {
	p.arrivesAt = max(p.arrivesAt, p.s.now+p.hop())
	p.s.after(p.arrivesAt-p.s.now, func() {
		if p.cutAt == 0 || p.s.now < p.cutAt {
			arrive()
		}
	})
}

// CarryOut is part of matchingsim.Host.
func (p *matchProc) CarryOut(fx *matchingsim.Effects) {
	for _, a := range fx.Answers {
		p.publish(func() { p.m.answer(p, a) })
	}
	for _, r := range fx.Refusals {
		p.s.violated("%s refuses a poll: %s", p.name, r.Why.Message)
	}
	if len(fx.Moves) > 0 {
		p.move(fx.Moves)
	}
	p.tellParents(fx.Branches)
	for i := range fx.Batches {
		w, msg := p.s.parts[fx.Batches[i].Partition], p.message(&fx.Batches[i])
		p.publish(func() { w.requestBatch(p, msg) })
	}
	for _, c := range fx.Calls {
		p.callTables(c)
	}
	for _, d := range fx.Opens {
		p.openTables(d)
	}
	for _, d := range fx.Drops {
		p.m.nodes[d.Domain].ask(p, func() { p.m.nodes[d.Domain].tables.Drop(d.Domain, d.Limits) }, func(bool) {})
	}
	for _, a := range fx.Asks {
		p.ask(a)
	}
	p.tellOthers(fx)
	for _, a := range fx.Acks {
		p.publish(func() { p.shard.stream.acked(a) })
	}
	if fx.Counts.Malformed > 0 {
		p.s.violated("%s has met something malformed", p.name)
	}
	if fx.Open {
		p.open()
	}
}

// tellOthers sends the hints for other shards, and for history.
func (p *matchProc) tellOthers(fx *matchingsim.Effects) {
	freed, restore := slices.Clone(fx.Freed), slices.Clone(fx.Restore)
	if len(freed)+len(restore) > 0 {
		p.publish(func() {
			for _, sh := range p.m.shards {
				for _, o := range sh.living() {
					if o.owner == nil || p.s.fault(lostTriggers, 100) {
						continue
					}
					o.do(o.latency(), func() {
						o.owner.Put(func(in *matchingsim.Inputs) {
							in.Freed, in.Restore = append(in.Freed, freed...), append(in.Restore, restore...)
						})
					})
				}
			}
		})
	}
	for _, h := range fx.Hungry {
		p.publish(func() {
			for _, w := range p.s.parts {
				for _, o := range w.living() {
					if !p.s.fault(lostTriggers, 100) {
						o.do(o.latency(), func() { o.owner.Hungry(h.Domain, h.Tasklist, h.Present) })
					}
				}
			}
		})
	}
}

// message is a batch as it lies in the log.
func (p *matchProc) message(b *matchingsim.Batch) *historysim.Message {
	m := &historysim.Message{
		Event: true, Shard: uint32(p.shard.number) + 1, Epoch: p.epoch, Request: b.Number, Delivered: b.Delivered,
	}
	if b.Fence {
		m.Events = append(m.Events, historysim.Event{Kind: historysim.Fence})
	}
	for _, q := range b.Polls {
		m.Polls = append(m.Polls, historysim.Poll{Domain: q.Domain, Worker: historysim.NewWorker(q.Worker, q.WorkerID), ReplyTo: q.ReplyTo, JSON: q.JSON, Max: int32(q.Max), BytesMax: int64(q.BytesMax)})
	}
	for _, g := range b.Grabs {
		var path []string
		for _, ref := range g.Path {
			path = append(path, string(ref))
		}
		m.Events = append(m.Events, historysim.Event{
			Kind: historysim.Started, ID: g.Trigger.ID, Domain: b.Polls[g.Poll].Domain, Worker: m.Polls[g.Poll].Worker, Poll: uint32(g.Poll) + 1,
			Limits: historysim.NewPath(path...),
			Fence:  ids.Token{Position: g.Trigger.Position, Version: g.Trigger.Version, Nonce: g.Nonce},
		})
	}
	for _, h := range b.HandBacks {
		m.Events = append(m.Events, historysim.Event{
			Kind: historysim.Released, ID: h.ID, Domain: h.Domain, Fence: ids.Token{Position: h.Position, Version: h.Version, Nonce: h.Nonce},
		})
	}
	return m
}

// requestBatch sends a batch of matching to the owners.
func (w *world) requestBatch(p *matchProc, m *historysim.Message) {
	m.From = p
	w.request(m)
	if !w.telling {
		return
	}
	w.say(p.name, "batch %d, delivered %d", m.Request, m.Delivered)
	for i := range m.Events {
		e := &m.Events[i]
		w.say(p.name, "  %d: %v %s %s %v", i, e.Kind, w.name(e.ID), fence(e), e.Limits)
	}
}

// decided takes what history has decided about a batch. If the process is gone, history mostly hears that
// it was not delivered.
func (p *matchProc) decided(from *proc, a *historysim.Answer) {
	if grants := from.w.granted; grants != nil && firstGrant(a) {
		grants(p)
		return
	}
	if p.dead {
		if p.s.fault(quietAnswers, 300) {
			return
		}
		p.s.say(p.name, "answer %d bounces to %s", a.RequestID, from.name)
		from.do(from.latency(), func() { from.owner.Bounced(a) })
		return
	}
	out := matchingsim.Verdicts{Partition: from.w.part, Batch: a.RequestID, First: a.First}
	for i := range a.Verdicts {
		v := &a.Verdicts[i]
		verdict := matchingsim.Verdict{Refused: string(v.Code), Fenced: v.Fenced, Trace: v.Trace, DeadlineMS: v.Grant.DeadlineAt}
		if v.Grant.Task != nil {
			verdict.Task = encodeGrant(v.Grant.Task.ID, v.Grant.Token)
		}
		out.All = append(out.All, verdict)
	}
	p.do(p.latency(), func() { p.owner.Put(func(in *matchingsim.Inputs) { in.Verdicts = append(in.Verdicts, out) }) })
}

func firstGrant(a *historysim.Answer) bool {
	return slices.ContainsFunc(a.Verdicts, func(v historysim.Verdict) bool { return v.Grant.First })
}

// open shows frontends the epoch, until that is done or a later one is taken.
func (p *matchProc) open() {
	sh, answered := p.shard, false
	p.do(timeout, func() {
		if !answered {
			answered = true
			p.open()
		}
	})
	p.s.after(p.latency(), func() {
		ok := sh.taken == p.epoch
		if ok && sh.open < p.epoch {
			sh.open = p.epoch
			p.s.say(p.name, "opens epoch %d", p.epoch)
			p.s.after(p.s.dice.upTo(50*time.Millisecond), func() { p.m.opened(sh, p.epoch) })
		}
		if p.s.fault(unknownOutcomes, 40) {
			return
		}
		p.do(p.latency(), func() {
			if answered = true; !ok && !p.dead {
				p.owner.Kill()
				p.Ended("it cannot open its epoch")
			}
		})
	})
}

// encodeGrant is a task as a worker gets it.
func encodeGrant(id ids.TaskID, token ids.Token) []byte {
	b := make([]byte, 0, taskBytes)
	b = append(b, id[:]...)
	b = fmt.Appendf(b, " %d %d %d", token.Position, token.Version, token.Nonce)
	return b[:taskBytes:taskBytes]
}

func decodeGrant(b []byte) (id ids.TaskID, token ids.Token) {
	copy(id[:], b)
	var numbers [3]uint64
	at := len(id) + 1
	for i := range numbers {
		end := at
		for end < len(b) && b[end] >= '0' && b[end] <= '9' {
			end++
		}
		numbers[i], _ = strconv.ParseUint(string(b[at:end]), 10, 64)
		at = end + 1
	}
	return id, ids.Token{Position: ids.Position(numbers[0]), Version: uint32(numbers[1]), Nonce: numbers[2]}
}
