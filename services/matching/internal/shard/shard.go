package shard

import (
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Deps is what a shard works with; all of it is needed but LogVersion and Tracing.
type Deps struct {
	// Shard is its number, Partitions how many history partitions there are.
	Shard, Partitions int
	// VerdictsTo is where history answers this shard's events.
	VerdictsTo string
	// AnswerBytesMax bounds the tasks of one answer, in encoded bytes.
	AnswerBytesMax int
	// Quarantine passes before the bookings of a domain that lost them are asked
	// for; see the constant. Zero only where no other process grabs.
	Quarantine time.Duration

	Tables  Tables
	Outbox  Outbox
	History History
	Limits  Limits
	// LogVersion is the log version to write; nil = the first.
	LogVersion func() uint32
	Config     Config
	Metrics    *Metrics
	Tracing    *telemetry.Tracing
	Log        *slog.Logger
}

// Shard is one matching shard while it is owned. Its fields belong to the loop,
// except the mailbox.
type Shard struct {
	Deps
	box mailbox

	// ctx ends when the shard ends; calls to the tables and to history use it.
	ctx     context.Context
	openers sync.WaitGroup

	now      time.Time
	domains  map[string]*domain
	lists    map[table.Tasklist]*tasklist
	lanes    []*lane
	batches  map[uint64]*batch
	lastID   uint64
	alive    int
	draining bool

	due         deadlines
	housekeepAt time.Time
	healAt      time.Time
	// tablesDown: the last call failed; the next is made at tablesRetryAt.
	tablesDown    bool
	tablesRetryAt time.Time

	// answered remembers what answers held until it is known that they were heard:
	// those of this period and of the one before.
	answered, answeredBefore map[uint64][]fence
	answeredTurnAt           time.Time

	turn
}

// turn is the work of one turn of the loop; it is empty between two.
type turn struct {
	again    bool
	arrivals []arrival
	puts     []arrival
	putBack  []table.Chunk
	dirty    []*tasklist
	touched  []*poll
	accounts map[account]*settlement
	handBack []handBack
}

// New returns a shard that is ready to be run.
func New(d Deps) *Shard {
	s := &Shard{
		Deps:     d,
		box:      mailbox{wake: make(chan struct{}, 1)},
		domains:  map[string]*domain{},
		lists:    map[table.Tasklist]*tasklist{},
		lanes:    make([]*lane, d.Partitions),
		batches:  map[uint64]*batch{},
		lastID:   rand.Uint64(), // an owner before this one may still be answered
		answered: map[uint64][]fence{}, answeredBefore: map[uint64][]fence{},
		now: time.Now(),
	}
	if s.LogVersion == nil {
		s.LogVersion = func() uint32 { return logversion.First }
	}
	s.accounts = map[account]*settlement{}
	for p := range s.lanes {
		s.lanes[p] = &lane{partition: p}
	}
	return s
}

// Run serves the shard until ctx ends, then gives it up in order: parked polls are
// answered, verdicts under way awaited for a short while. It returns nil.
func (s *Shard) Run(ctx context.Context) error {
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer s.openers.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var m mail
	for {
		select {
		case <-ctx.Done():
			s.drain(&m, timer)
			return nil
		case <-s.box.wake:
		case <-timer.C:
		}
		s.turns(&m)
		timer.Reset(max(0, time.Until(s.nextWake())))
	}
}

// turns works until nothing is left that could be done now.
func (s *Shard) turns(m *mail) {
	for {
		*m = s.box.take(*m)
		s.step(m)
		if !s.again {
			return
		}
	}
}

// step is one turn: take everything in, then act on it as a whole. The order is
// what makes it sound: bookings are extended before the answers that rely on them,
// and released before others are taken.
func (s *Shard) step(m *mail) {
	s.now, s.again = time.Now(), false
	for _, f := range m.calls {
		f()
	}
	for _, f := range m.freed {
		s.unblock(f.Domain, f.Types)
	}
	for _, v := range m.verdicts {
		s.verdicts(v)
	}
	for _, id := range m.unheard {
		s.unheard(id)
	}
	for _, d := range m.hints {
		s.arrive(d)
	}
	s.settle()
	s.finishPolls()
	for _, p := range m.polls {
		s.arrivePoll(p)
	}
	s.match()
	s.sendGrabs()
	s.expirePolls()
	s.sendHandBacks()
	if !s.now.Before(s.housekeepAt) {
		s.housekeep()
	}
}

// nextWake is when the loop has to look even if nothing comes in.
func (s *Shard) nextWake() time.Time {
	at := s.housekeepAt
	if len(s.due) > 0 && s.due[0].at.Before(at) {
		at = s.due[0].at
	}
	return at
}

// drain gives the shard up.
func (s *Shard) drain(m *mail, timer *time.Timer) {
	s.draining = true
	end := time.Now().Add(drainTimeout)
	s.turns(m)
	s.leave()
	for s.grabsInFlight() > 0 && time.Now().Before(end) {
		timer.Reset(housekeepEvery)
		select {
		case <-s.box.wake:
		case <-timer.C:
		}
		s.turns(m)
	}
	s.answerQueued()
	for _, b := range s.batches { // no verdict came: those polls get what they have
		for i := range b.grabs {
			if p := b.grabs[i].poll; p != nil && !p.answered {
				s.answer(p)
			}
		}
	}
	s.sendHandBacks()
	*m = s.box.take(*m)
	for _, d := range m.hints {
		d.Done(false)
	}
	for _, p := range m.polls {
		s.arrivePoll(p)
	}
}

// leave answers the polls for which nothing is under way and takes back the grabs
// that were not sent.
func (s *Shard) leave() {
	for _, lane := range s.lanes {
		for i := range lane.gather {
			s.unsend(&lane.gather[i])
		}
		lane.gather = nil
	}
	s.settle()
	s.finishPolls()
	s.answerQueued()
	s.unhold()
	s.match()
}

func (s *Shard) answerQueued() {
	for _, l := range s.lists {
		for p := l.polls.first; p != nil; p = l.polls.first {
			s.answer(p)
		}
	}
}

func (s *Shard) grabsInFlight() int {
	n := 0
	for _, lane := range s.lanes {
		n += lane.inFlight
	}
	return n
}

// arrivePoll queues a poll or refuses it.
func (s *Shard) arrivePoll(m *rpcv1.Poll) {
	s.Metrics.Polls.Add(1)
	switch {
	case s.draining:
		if err := s.Outbox.Answer(m.ReplyTo, m.Json, nil, 0); err != nil {
			s.Log.Debug("answer a poll while leaving", "error", err)
		}
		return
	case m.Domain == "" || m.Tasklist == "" || m.MaxTasks < 1:
		s.Outbox.Refuse(m.ReplyTo, fault.New(fault.InvalidArgument, "a poll needs a domain, a tasklist and max_tasks"))
		return
	case s.alive >= s.Config.PollsMax:
		s.Metrics.PollsRefused.Add(1)
		s.Outbox.Refuse(m.ReplyTo, fault.New(fault.ResourceExhausted, "too many polls wait").After(time.Second))
		return
	}
	list := s.list(table.Tasklist{Domain: m.Domain, Name: m.Tasklist})
	p := newPoll(list, m)
	list.polls.pushBack(p)
	list.alive++
	s.alive++
	heap.Push(&s.due, due{p.until, p})
	s.mark(list)
	s.housekeepSoon()
}

// list finds or makes a tasklist, and opens its domain where that is new.
func (s *Shard) list(name table.Tasklist) *tasklist {
	l := s.lists[name]
	if l == nil {
		l = &tasklist{Tasklist: name, domain: s.domain(name.Domain), taskBytes: taskBytesGuess}
		s.lists[name] = l
		l.domain.lists[name] = l
	}
	return l
}

// mark has a tasklist matched in this turn, or the next.
func (s *Shard) mark(l *tasklist) {
	if !l.dirty {
		l.dirty = true
		s.dirty = append(s.dirty, l)
	}
}

// finishPolls looks at polls whose grabs have all been decided.
func (s *Shard) finishPolls() {
	for _, p := range s.touched {
		p.touched = false
		if p.answered || p.pending > 0 {
			continue
		}
		// Nothing granted: wait on, at the head of the queue, where it came from.
		if p.holds() == 0 && !s.draining && (p.until.After(s.now) || p.rounds < wastedRounds) {
			p.rounds++
			if !p.queued {
				p.list.polls.pushFront(p)
			}
			if !p.until.After(s.now) {
				heap.Push(&s.due, due{s.now, p}) // a last look at the table, then it ends
			}
			s.mark(p.list)
			continue
		}
		s.answer(p)
	}
	clear(s.touched)
	s.touched = s.touched[:0]
}

func (s *Shard) touch(p *poll) {
	if !p.touched {
		p.touched = true
		s.touched = append(s.touched, p)
	}
}

func (p *poll) holds() int {
	n := 0
	for i := range p.granted {
		if p.granted[i].task != nil {
			n++
		}
	}
	return n
}

// answer ends a poll with what it was granted. What does not fit into an answer, or
// reaches nobody, is handed back.
func (s *Shard) answer(p *poll) {
	p.list.polls.remove(p)
	p.answered = true
	p.list.alive--
	s.alive--
	tasks := make([][]byte, 0, len(p.granted))
	fences := make([]fence, 0, len(p.granted))
	bytes, most := 0, s.answerBytesMax(p)
	for i := range p.granted {
		g := &p.granted[i]
		if g.task == nil {
			continue
		}
		if bytes += len(g.task); bytes > most && len(tasks) > 0 {
			s.handBack = append(s.handBack, handBack{fence: g.fence})
			continue
		}
		tasks, fences = append(tasks, g.task), append(fences, g.fence)
	}
	if len(tasks) > 0 {
		p.list.weigh(bytes, len(tasks))
	}
	p.granted = nil
	s.lastID++
	if err := s.Outbox.Answer(p.replyTo, p.json, tasks, s.lastID); err != nil {
		s.Log.Warn("answer a poll", "error", err, "tasks", len(tasks))
		s.takeAllBack(fences)
		return
	}
	if len(fences) > 0 {
		s.answered[s.lastID] = fences
		s.housekeepSoon()
	}
}

// answerBytesMax bounds the tasks of an answer; as JSON they grow by up to a half.
func (s *Shard) answerBytesMax(p *poll) int {
	if p.json {
		return s.AnswerBytesMax / 2
	}
	return s.AnswerBytesMax
}

func (s *Shard) takeAllBack(fences []fence) {
	for _, f := range fences {
		s.handBack = append(s.handBack, handBack{fence: f})
	}
}

// unheard takes back what an answer held that reached nobody.
func (s *Shard) unheard(id uint64) {
	for _, answers := range []map[uint64][]fence{s.answered, s.answeredBefore} {
		if fences, ok := answers[id]; ok {
			s.Metrics.Unheard.Add(int64(len(fences)))
			s.takeAllBack(fences)
			delete(answers, id)
		}
	}
}

// expirePolls answers the polls whose time is over.
func (s *Shard) expirePolls() {
	for len(s.due) > 0 && !s.due[0].at.After(s.now) {
		d := heap.Pop(&s.due).(due)
		p := d.poll
		switch {
		case p.answered:
		case s.again && p.pending == 0 && p.list.dirty: // the next turn may have something
			heap.Push(&s.due, d)
			return
		case p.pending == 0 || !p.until.Add(pollGrace).After(s.now):
			s.answer(p)
		default:
			heap.Push(&s.due, due{p.until.Add(pollGrace), p})
		}
	}
}

// called notes how a call to the tables went. It tells whether all of it was
// carried out.
func (s *Shard) called(what string, err error) bool {
	var lost *table.LostError
	switch {
	case err == nil, errors.As(err, &lost):
		if s.tablesDown {
			s.tablesDown = false
			s.Log.Info("the tables answer again")
			s.markAll()
		}
		if lost != nil {
			for _, name := range lost.Domains {
				s.lost(name)
			}
		}
		return err == nil
	case !s.tablesDown:
		s.tablesDown = true
		s.Log.Error("the tables do not answer; polls wait, unlimited types go on", "call", what, "error", err)
		s.unhold()
	}
	s.tablesRetryAt = s.now.Add(retryEvery)
	s.housekeepSoon()
	return false
}

// unhold lets go of what waits for a domain to be opened: it meets a poll, or goes
// back to its stream.
func (s *Shard) unhold() {
	for _, d := range s.domains {
		if len(d.held) > 0 {
			s.arrivals = append(s.arrivals, d.held...)
			d.held = nil
			s.again = true
		}
	}
}

// tablesUsable tells whether a call to the tables is worth trying.
func (s *Shard) tablesUsable() bool { return !s.tablesDown || !s.now.Before(s.tablesRetryAt) }

func (s *Shard) markAll() {
	for _, l := range s.lists {
		if l.polls.n > 0 {
			s.mark(l)
		}
	}
}

// callContext bounds one call to the tables.
func (s *Shard) callContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, callTimeout)
}

// newEvents is the frame of a batch of events of this shard.
func (s *Shard) newEvents() logv1.EventBatch {
	s.lastID++
	return logv1.EventBatch{ReplyTo: s.VerdictsTo, RequestId: s.lastID, LogVersion: logversion.Field(s.LogVersion())}
}
