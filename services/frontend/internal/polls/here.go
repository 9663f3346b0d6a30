package polls

import (
	"math"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/idle"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"
)

// startsMax bounds the tasks of a tasklist that start with one flush: they are read at once, before all others.
const startsMax = filing.OwnTasks

// keep has a poll stay here, if it may: where its tasklist has one partition, and core/idle takes it. The caller holds the lock.
func (p *Polls) keep(at *Poll, now time.Time, take func(idle.Tasklist, idle.Poll, time.Time) bool) bool {
	req := at.Req
	if !p.DirectStarts || p.stopped || !now.Before(at.Until) || p.DrainOf(at) != nil || !direct.Single(p.Catalog, req.Domain, req.Tasklist) {
		return false
	}
	if !take(idle.Tasklist{Domain: req.Domain, Name: req.Tasklist}, idle.Poll{ID: at.number, Worker: req.Worker, Types: req.Types, Max: int(req.MaxTasks), Bytes: p.AnswerBytes}, now) {
		return false
	}
	p.here[at.number] = at
	p.endsAt(at, at.Until)
	return true
}

// Heard takes in how many triggers of a tasklist wait at matching.
func (p *Polls) Heard(l *rpcv1.PartitionLoad, now time.Time) {
	at := idle.Tasklist{Domain: l.Domain, Name: l.Tasklist}
	p.mu.Lock()
	defer p.unlock()
	p.leave(p.idle.Heard(at, int(min(l.Triggers, math.MaxInt32)), l.Types, now), now)
}

// leave sends polls to matching that were here. The caller holds the lock.
func (p *Polls) leave(numbers []uint64, now time.Time) {
	for _, number := range numbers {
		at := p.here[number]
		delete(p.here, number)
		p.forward(at, now)
	}
}

// forward sends a poll to matching that does not stay here any longer. The caller holds the lock.
func (p *Polls) forward(at *Poll, now time.Time) {
	p.endsAt(at, at.Until.Add(OverAfter))
	p.route(at, now)
}

// Submit is tasks of one tasklist on their way into the log.
type Submit struct {
	Domain, Tasklist string
	Records          []*logv1.Record
	// NowMS is the time of the server, Unix ms.
	NowMS int64
	// polls are those that the tasks start for, by task; nil = they do not, or the polls wait no longer for them.
	polls []*Poll
	// starts: the log may have it with the starts.
	starts bool
}

// Starts tells whether the tasks are to start with the submit.
func (s *Submit) Starts() bool { return s != nil && s.starts }

// may tells whether all tasks of s may start with it.
func (s *Submit) may(c *catalog.Catalog) bool {
	return !slices.ContainsFunc(s.Records, func(r *logv1.Record) bool { return !direct.May(c, s.Domain, r, s.NowMS) })
}

// Has tells whether polls of a tasklist are here.
func (p *Polls) Has(domain, tasklist string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle.Has(idle.Tasklist{Domain: domain, Name: tasklist})
}

// Begin has the tasks of submits start with them, as far as they may, and polls that wait here have room for them. The caller says of each that starts what
// became of it, by Stored or NotStored; by Unknown while it does not know.
func (p *Polls) Begin(all []*Submit) {
	p.ReleaseDrained() // a drain that was answered before these submits came
	p.mu.Lock()
	defer p.mu.Unlock()
	var given []uint64
	starts := map[idle.Tasklist]int{}
	for _, s := range all {
		at := idle.Tasklist{Domain: s.Domain, Name: s.Tasklist}
		if starts[at]+len(s.Records) > startsMax || !s.may(p.Catalog) {
			continue
		}
		tasks := make([]idle.Task, len(s.Records))
		for i, r := range s.Records {
			tasks[i] = idle.Task{Type: r.Type, Bytes: direct.Bytes(r)}
		}
		dealt, ok := p.idle.Deal(at, tasks)
		if !ok {
			continue
		}
		given = append(given, dealt...)
		starts[at] += len(tasks)
		s.polls, s.starts = make([]*Poll, len(dealt)), true
		for i, number := range dealt {
			to := p.here[number]
			direct.Begin(s.Records[i], to.Req.Worker, to.Req.WorkerId, s.NowMS)
			to.open++
			s.polls[i] = to
		}
	}
	for _, number := range p.idle.TakeOut(given) {
		at := p.here[number]
		delete(p.here, number)
		p.endsAt(at, at.Until.Add(OverAfter))
	}
}

// Stored hands the tasks of s over, which the log has at seq. Attempts whose polls are over by then, and all of them if it is not in time, as the log may have
// ignored their starts, are handed back.
func (p *Polls) Stored(s *Submit, seq uint64, inTime bool) {
	if !s.Starts() {
		return
	}
	gets, attempts := make([]*yardv1.PolledTask, len(s.Records)), make([]direct.Attempt, len(s.Records))
	for i, r := range s.Records {
		id := ids.TaskID(r.Id)
		attempts[i] = direct.Attempt{ID: id, Token: direct.Token(r, seq)}
		gets[i] = direct.Task(r, id, p.Tokens.Print(id, attempts[i].Token))
	}
	var back []direct.Attempt
	if s.polls == nil {
		back = attempts
	}
	var given []int
	p.mu.Lock()
	for i, at := range s.polls {
		if at.over || !inTime {
			back = append(back, attempts[i])
		} else {
			at.gets, at.attempts = append(at.gets, gets[i]), append(at.attempts, attempts[i])
			given = append(given, i)
		}
	}
	p.mu.Unlock()
	for _, i := range given {
		p.ShowStart(s, i)
	}
	p.handBack(s.Domain, back)
	p.decided(s)
}

// Unknown has the polls of s wait no longer for it: it may take long until it is known whether the log has it. If it does, its attempts are handed back.
func (p *Polls) Unknown(s *Submit) {
	if s.Starts() {
		p.decided(s)
	}
}

// NotStored takes the starts of s back: the log does not have it, or is to have it without them.
func (p *Polls) NotStored(s *Submit) {
	if !s.Starts() {
		return
	}
	for _, r := range s.Records {
		r.Start = nil
	}
	p.decided(s)
	s.starts = false
}

// decided answers the polls of s that wait for nothing else. Those that get nothing wait on.
func (p *Polls) decided(s *Submit) {
	now := time.Now()
	p.mu.Lock()
	defer p.unlock()
	for _, at := range s.polls {
		if at.open--; at.open > 0 || at.over {
			continue
		}
		switch {
		case len(at.gets) > 0:
			p.end(at, func() { p.answerGiven(at) })
		case p.stopped:
			p.end(at, at.empty)
		case !p.keep(at, now, p.idle.Back):
			p.forward(at, now)
		}
	}
	s.polls = nil
}

// answerGiven answers a poll with what it gets.
func (p *Polls) answerGiven(at *Poll) {
	id := p.given.Add(at.Req.Domain, at.Req.ReplyTo, at.attempts, time.Now())
	if err := p.Bus.AnswerPoll(at.Req.ReplyTo, at.Req.Json, id, &yardv1.PollResponse{Tasks: at.gets}); err != nil {
		p.Log.Debug("a poll was not answered, and its tasks are handed back", "error", err)
		p.TasksBounced(id)
	}
}

// TasksBounced hands back what was given to a poll in an answer that no one received.
func (p *Polls) TasksBounced(id uint64) { p.handBack(p.given.Bounced(id)) }

// TakeGivenUp hands back what was given to inboxes that have not received it, and ends their polls that matching does not have (topology.HintGivenUp).
func (p *Polls) TakeGivenUp(data []byte) {
	var m rpcv1.GivenUp
	if m.UnmarshalVT(data) != nil {
		return // it is a hint: the leases of the attempts are left
	}
	for _, name := range m.Inboxes {
		p.handBack(m.Domain, p.given.Lost(m.Domain, name))
		p.handBack(m.Domain, p.giveUp(inbox{m.Domain, name}))
	}
}

// giveUp ends a poll that is here, or that submits are being stored for, and returns the attempts that it was to get.
func (p *Polls) giveUp(of inbox) []direct.Attempt {
	p.mu.Lock()
	defer p.unlock()
	at := p.byInbox[of]
	if at == nil || p.here[at.number] == nil && at.open == 0 {
		return nil
	}
	p.end(at, at.empty)
	return at.attempts
}

func (p *Polls) handBack(domain string, attempts []direct.Attempt) {
	if len(attempts) > 0 {
		p.HandBack(domain, attempts)
	}
}
