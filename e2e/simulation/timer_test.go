package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/services/timer/timersim"
	serverclock "github.com/yardmaster-io/yardmaster/shared/clock"
)

const (
	// retryAfter is how long a timer owner waits before it repeats what failed.
	retryAfter = 100 * time.Millisecond
	clockEvery = 2 * time.Second
	clockFirst = 3
	// timerHorizon is how long before its time a task comes into memory, timerNear how many do: so few that buckets come and go.
	timerHorizon, timerNear = 6 * time.Second, 3
)

// timerProc is one process with a timer owner in it: the loop and the readers of package firing.
type timerProc struct {
	host
	w     *world
	owner *timersim.Owner
	clock serverclock.Estimate
	// serving: it has loaded what is due soon, and fires. whole: it has loaded all, and answers. busy: a step is under way, and all else waits.
	serving, whole, busy bool
	// next is the first message that it has not read, inbox what is read and not taken in.
	next    uint64
	inbox   []timersim.Message
	calls   []func()
	retryAt time.Duration
}

// timerCall is a question of history.
type timerCall struct {
	search historysim.Search
	// end is how far the timer must have read before it answers.
	end    uint64
	answer func(historysim.Outcome)
}

func (w *world) spawnTimer() {
	w.timersBorn++
	p := &timerProc{host: w.newHost(w.named(fmt.Sprintf("timer-%d", w.timersBorn)), timerPauses), w: w, next: 1}
	p.owner = timersim.New(timersim.Config{
		Epoch: uint64(w.timersBorn), ChunkTasksMax: w.plan.chunk, Horizon: timerHorizon, NearMax: timerNear,
	})
	w.timers = append(w.timers, p)
	w.say(p.name, "starts, wall clock %+v", p.wall)
	p.do(0, p.load)
}

func (w *world) livingTimers() (all []*timerProc) {
	for _, p := range w.timers {
		if !p.dead {
			all = append(all, p)
		}
	}
	return all
}

// replaceTimer begins a new owner a little later, if there is none by then.
func (w *world) replaceTimer() {
	w.after(w.dice.upTo(2*time.Second), func() {
		if len(w.livingTimers()) == 0 {
			w.spawnTimer()
		}
	})
}

// now is the time to fire by, Unix ms.
func (p *timerProc) now() int64 {
	return p.clock.At(p.mono()).UnixMilli()
}

// until has a store do something, again and again until it has, and calls then with the answer.
func (p *timerProc) until(what func() bool, then func()) {
	p.w.after(p.latency(), func() {
		ok := p.w.now >= p.w.down && what()
		p.do(p.latency(), func() {
			if ok {
				then()
			} else {
				p.do(retryAfter, func() { p.until(what, then) })
			}
		})
	})
}

// load reads the cursor, and then what is to be known of the store.
func (p *timerProc) load() {
	var cursor []byte
	var seq uint64
	p.until(func() bool {
		cursor, seq = p.w.cursor, p.w.cursorSeq
		return true
	}, func() {
		p.learn(clockFirst, func() {
			if err := p.owner.Resume(cursor, seq, p.now()); err != nil {
				p.w.violated("%s: %v", p.name, err)
				return
			}
			p.loadFirst(seq)
		})
	})
}

// loadFirst loads what is to be known before anything fires, or all.
func (p *timerProc) loadFirst(seq uint64) {
	end, from := uint64(0), p.owner.EarlyFrom()
	var tail []timersim.Message
	p.until(func() bool {
		if end = p.w.waiting.last(); from > 0 {
			tail = p.w.waiting.tail(from, end)
		}
		return true
	}, func() {
		var subjects []string
		p.until(func() bool { subjects = p.w.waiting.subjects(); return true }, func() {
			first, rest := p.owner.NearFirst(subjects, tail, end)
			p.read(1, end, func(do func()) { do() }, func(m timersim.Message) {
				if !rest || first[m.Subject] {
					p.arrive(m)
				}
			}, func() {
				p.next = end + 1
				p.serve(seq)
				if p.whole = !rest; rest {
					p.loadRest(first, end)
				}
			})
		})
	})
}

// loadRest loads the messages up to the end that were not loaded first.
func (p *timerProc) loadRest(first map[string]bool, end uint64) {
	p.read(1, end, p.call, func(m timersim.Message) {
		if !first[m.Subject] {
			p.w.check.arrived(p, m.Seq, p.owner.Rest(m))
		}
	}, func() {
		p.owner.Whole()
		p.whole = true
		p.w.say(p.name, "has loaded the rest, %d tasks wait", p.owner.Waiting())
	})
}

// read reads some messages of the store, and then the others up to the end. It takes them where run says.
func (p *timerProc) read(from, end uint64, run func(func()), take func(timersim.Message), then func()) {
	if from > end {
		run(then)
		return
	}
	upTo := min(end, from+uint64(p.w.dice.IntN(12)))
	var all []timersim.Message
	p.until(func() bool { all = p.w.waiting.tail(from, upTo); return true }, func() {
		run(func() {
			for _, m := range all {
				take(m)
			}
			p.do(0, func() { p.read(upTo+1, end, run, take, then) })
		})
	})
}

func (p *timerProc) arrive(m timersim.Message) {
	p.w.check.arrived(p, m.Seq, p.owner.Arrive(m))
}

// learn has looks at the server's clock.
func (p *timerProc) learn(looks int, then func()) {
	var server time.Time
	asked := p.mono()
	p.until(func() bool { server = time.UnixMilli(p.w.serverMS()); return true }, func() {
		p.clock.Learn(server, asked, p.mono())
		if looks > 1 {
			p.learn(looks-1, then)
		} else {
			then()
		}
	})
}

// serve fires, and answers when all is loaded.
func (p *timerProc) serve(seq uint64) {
	if err := p.owner.Loaded(); err != nil {
		p.w.violated("%s: %v", p.name, err)
		return
	}
	p.w.say(p.name, "serves, %d tasks wait, cursor %d", p.owner.Waiting(), seq)
	p.serving = true
	p.follow()
	p.watchClock()
	p.purge()
	p.tick()
	p.approach()
	p.keep()
}

// approach has buckets come into memory as time goes by.
func (p *timerProc) approach() {
	p.call(func() {
		subjects, upTo := p.owner.Approach(p.now())
		if len(subjects) == 0 {
			p.do(p.w.dice.between(100*time.Millisecond, time.Second), p.approach)
			return
		}
		p.w.say(p.name, "loads %v up to %d", subjects, upTo)
		p.do(0, func() { p.loadBuckets(subjects, upTo) })
	})
}

// loadBuckets reads buckets that come into memory.
func (p *timerProc) loadBuckets(subjects []string, upTo uint64) {
	p.read(1, upTo, p.call, func(m timersim.Message) {
		if slices.Contains(subjects, m.Subject) {
			p.owner.Near(m)
		}
	}, func() {
		p.owner.BucketsLoaded()
		p.do(0, p.approach)
	})
}

// follow reads what is stored from now on.
func (p *timerProc) follow() {
	p.w.after(p.latency(), func() {
		from, end := p.next, p.w.waiting.last()
		if p.w.now < p.w.down {
			p.do(retryAfter, p.follow)
			return
		}
		if from > end {
			p.w.storeWaiters = append(p.w.storeWaiters, func() { p.do(0, p.follow) })
			return
		}
		all := p.w.waiting.tail(from, end)
		p.do(p.latency(), func() {
			p.inbox, p.next = append(p.inbox, all...), end+1
			p.turn()
			p.follow()
		})
	})
}

func (p *timerProc) watchClock() {
	p.do(clockEvery, func() { p.learn(1, p.watchClock) })
}

// tick looks at the clock, now and then.
func (p *timerProc) tick() {
	p.turn()
	pause := p.w.dice.between(20*time.Millisecond, 200*time.Millisecond)
	if p.w.fault(slowTimer, 50) {
		pause = p.w.dice.between(time.Second, 8*time.Second)
	}
	p.do(pause, p.tick)
}

// call lets the loop call do between two steps.
func (p *timerProc) call(do func()) {
	p.calls = append(p.calls, do)
	p.turn()
}

// turn is one turn of the loop.
func (p *timerProc) turn() {
	if p.busy || p.dead || !p.serving {
		return
	}
	for len(p.inbox) > 0 && p.owner.Takes(p.inbox[0]) {
		p.arrive(p.inbox[0])
		p.inbox = p.inbox[1:]
	}
	calls := p.calls
	p.calls = nil
	for _, do := range calls {
		do()
	}
	if p.w.now < p.retryAt {
		return
	}
	if a, ok := p.owner.Fire(p.now()); ok {
		p.begin()
		p.store(a, p.end)
	}
}

func (p *timerProc) begin() { p.busy = true }

func (p *timerProc) end() {
	p.busy = false
	p.do(0, p.turn)
}

// store has an append of the owner stored, finds out whether it was, and tells the owner.
func (p *timerProc) store(a timersim.Append, then func()) {
	w, answered := p.w, false
	once := func(do func()) func() {
		return func() {
			if !answered {
				answered = true
				do()
			}
		}
	}
	p.do(timeout, once(func() { p.findOut(a, then) }))
	times := 1
	if w.fault(lostWrites, 40) {
		return
	}
	if w.fault(doubledWrites, 30) {
		times = 2
	}
	for range times {
		w.after(p.latency(), func() {
			result := w.fire(p, a)
			seq := w.cursorSeq
			if w.fault(unknownOutcomes, 60) {
				return
			}
			p.do(p.latency(), once(func() { p.stored(a, result, seq, then) }))
		})
	}
}

func (p *timerProc) stored(a timersim.Append, result historysim.Result, seq uint64, then func()) {
	switch result {
	case historysim.OK:
		p.owner.Stored(seq, p.now())
		then()
	case historysim.Refused:
		p.owner.NotStored()
		p.retryAt = p.w.now + retryAfter
		then()
	default:
		p.findOut(a, then)
	}
}

// findOut asks for the cursor, which tells what became of an append.
func (p *timerProc) findOut(a timersim.Append, then func()) {
	var cursor []byte
	var seq uint64
	p.until(func() bool { cursor, seq = p.w.cursor, p.w.cursorSeq; return true }, func() {
		switch p.owner.Refused(cursor, seq, p.now()) {
		case timersim.Stored:
			then()
		case timersim.Overtaken:
			p.w.say(p.name, "is overtaken")
			p.dead = true
			p.w.replaceTimer()
		default:
			p.do(retryAfter, func() { p.store(a, then) })
		}
	})
}

// purge removes what no one needs, now and then.
func (p *timerProc) purge() {
	p.do(p.w.dice.between(700*time.Millisecond, 2*time.Second), func() {
		var parked, end uint64
		p.until(func() bool { parked = p.w.checkpoint.Snapshot.TimerSeq; return true }, func() {
			p.until(func() bool { end = p.w.waiting.last(); return true }, func() {
				p.call(func() { p.purgeAll(p.owner.Purgeable(parked, end)) })
			})
		})
	})
}

func (p *timerProc) purgeAll(all []timersim.Purge) {
	if len(all) == 0 {
		p.purge()
		return
	}
	p.until(func() bool { p.w.purgeTimer(p, all[0]); return true }, func() {
		p.call(func() {
			p.owner.Purged(all[0])
			p.purgeAll(all[1:])
		})
	})
}

// askTimer has one of the timers that serve answer a question.
func (w *world) askTimer(op *historysim.Op, answer func(historysim.Outcome)) {
	var all []*timerProc
	for _, p := range w.livingTimers() {
		if p.whole {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		answer(historysim.Outcome{Result: historysim.Refused})
		return
	}
	p := all[w.dice.IntN(len(all))]
	p.do(p.latency(), func() { p.ask(op, answer) })
}

func (p *timerProc) ask(op *historysim.Op, answer func(historysim.Outcome)) {
	c := &timerCall{search: op.Search, end: p.w.waiting.last(), answer: answer}
	p.call(func() { p.answer(c) })
}

// answer answers a question once the timer has loaded all, and read all that was stored when it came.
func (p *timerProc) answer(c *timerCall) {
	if !p.whole || p.owner.ReadTo() < c.end {
		p.do(retryAfter, func() { p.call(func() { p.answer(c) }) })
		return
	}
	var out historysim.Outcome
	if !c.search.Command {
		found := p.owner.Locate(c.search.ID, "")
		if found.Loading {
			p.do(retryAfter, func() { p.call(func() { p.answer(c) }) })
			return
		}
		if out.Fired = found.LogSeq > 0; found.Record != nil {
			out.Task = p.w.decoder.Task(found.Record)
		}
		c.answer(out)
		return
	}
	messages, found := p.owner.FireEarly([]timersim.Wanted{{ID: c.search.ID, Domain: c.search.Domain}})
	out.Coming, out.Fired = len(found.Coming) > 0, len(found.Fired) > 0
	p.storeEarly(messages, func(ok bool) {
		if !ok {
			out = historysim.Outcome{Result: historysim.Refused}
		}
		c.answer(out)
	})
}

// storeEarly has early messages stored; ok: all are.
func (p *timerProc) storeEarly(all []timersim.EarlyMessage, then func(ok bool)) {
	if len(all) == 0 {
		then(true)
		return
	}
	w, m, answered := p.w, all[0], false
	end := func(ok bool) {
		switch {
		case answered:
			return
		case !ok:
			then(false)
		default:
			p.storeEarly(all[1:], then)
		}
		answered = true
	}
	p.do(timeout, func() { end(false) }) // no one knows whether it was stored
	if w.fault(lostWrites, 40) {
		return
	}
	w.after(p.latency(), func() {
		stored := !w.refuses(timerFull)
		if stored {
			seq := w.waiting.append(w.serverMS(), m.Subject, m.Data)
			w.waiting.noteEarly(m.Data)
			w.say(p.name, "stores an early message in %s: %d", m.Subject, seq)
			w.wakeTimers()
		}
		if !w.fault(unknownOutcomes, 60) {
			p.do(p.latency(), func() { end(stored) })
		}
	})
}

// wakeTimers lets those read that wait for the store's next message.
func (w *world) wakeTimers() {
	waiting := w.storeWaiters
	w.storeWaiters = nil
	for _, wake := range waiting {
		wake()
	}
}
