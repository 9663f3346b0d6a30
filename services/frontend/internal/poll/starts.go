package poll

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/idle"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
)

// Submit is tasks of one tasklist on their way into the log.
type Submit struct {
	Domain, Tasklist string
	Records          []*logv1.Record
	// NowMS is the time of the server, Unix ms.
	NowMS int64
	// polls are those that the tasks start for, by task; nil = they do not, or the polls wait no longer for them.
	polls []*one
	// starts: the log may have it with the starts.
	starts bool
}

// Starts reports whether the tasks are to start with the submit.
func (s *Submit) Starts() bool { return s != nil && s.starts }

// may reports whether all tasks of s may start with it.
func (s *Submit) may(c *catalog.Catalog) bool {
	return !slices.ContainsFunc(s.Records, func(r *logv1.Record) bool { return !direct.May(c, s.Domain, r, s.NowMS) })
}

// Has reports whether polls of a tasklist are here.
func (p *Polls) Has(domain, tasklist string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Has(idle.Tasklist{Domain: domain, Name: tasklist})
}

// Begin has the tasks of submits start with them, as far as they may, and polls that wait here have room for them. The caller reports what
// became of each that starts, by Stored or NotStored; by Unknown while it does not know.
func (p *Polls) Begin(all []*Submit) {
	p.ReleaseDrained() // a drain that was answered before these submits came
	all = slices.DeleteFunc(all, func(s *Submit) bool { return !s.may(p.Catalog) })
	starts := make([]core.Start, len(all))
	for i, s := range all {
		starts[i] = core.Start{Of: idle.Tasklist{Domain: s.Domain, Name: s.Tasklist}, Tasks: make([]idle.Task, len(s.Records))}
		for k, r := range s.Records {
			starts[i].Tasks[k] = idle.Task{Type: r.Type, Bytes: direct.Bytes(r)}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, polls := range p.waiting.Begin(starts) {
		s := all[i]
		s.polls, s.starts = polls, polls != nil
		for k, to := range polls {
			direct.Begin(s.Records[k], to.Worker, to.WorkerID, s.NowMS)
		}
	}
}

// Stored hands the tasks of s over, which the log has at seq, if it is in time; else their attempts are handed back.
func (p *Polls) Stored(s *Submit, seq uint64, inTime bool) {
	if !s.Starts() {
		return
	}
	tasks, attempts := make([]*yardv1.PolledTask, len(s.Records)), make([]core.Attempt, len(s.Records))
	for i, r := range s.Records {
		id := ids.TaskID(r.Id)
		attempts[i] = core.Attempt{ID: id, Token: direct.Token(r, seq)}
		tasks[i] = direct.Task(r, id, p.Tokens.Print(id, attempts[i].Token))
	}
	var assigned []int
	p.change(func(c *core.Polls[*request], now time.Time) {
		assigned = c.Stored(s.Domain, s.polls, attempts, inTime)
		for _, i := range assigned {
			r := s.polls[i].Shell
			r.tasks = append(r.tasks, tasks[i])
		}
		c.Decided(s.polls, now)
		s.polls = nil
	})
	for _, i := range assigned {
		p.showStart(s, i)
	}
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

// decided answers the polls of s that wait for nothing else.
func (p *Polls) decided(s *Submit) {
	p.change(func(c *core.Polls[*request], now time.Time) {
		c.Decided(s.polls, now)
		s.polls = nil
	})
}

// showStart makes the span of a task that a poll is given with its submit.
func (p *Polls) showStart(s *Submit, task int) {
	r := s.Records[task]
	if !p.Tracing.On() || !telemetry.Sampled(r.Trace) {
		return
	}
	id := ids.TaskID(r.Id)
	about := signals.Task{Domain: s.Domain, Tasklist: s.Tasklist, Type: r.Type, ID: id.String(), Partition: id.Partition()}
	now, chosen := p.Clock.Now(), time.UnixMilli(s.NowMS).Add(time.Millisecond-1) // the end of the millisecond is not before the submit
	if chosen.After(now) {
		chosen = now
	}
	p.Tracing.Span(r.Trace, signals.SpanStart, signals.SpanKind(signals.SpanStart), chosen, now, about.Attributes(signals.SpanStart)...)
}

// How long handing back is tried, and how soon again if history did not take it.
const handBackWithin, handBackAgain = 30 * time.Second, time.Second

// handBack makes tasks ready again whose attempts no worker has. The leases end those that it does not reach.
func (p *Polls) handBack(domain string, attempts []core.Attempt) {
	p.handBackUntil(time.Now().Add(handBackWithin), domain, attempts)
}

func (p *Polls) handBackUntil(deadline time.Time, domain string, attempts []core.Attempt) {
	now := time.Now()
	c := call.Call{Domain: domain, Received: now, Now: p.Clock.At(now), Deadline: deadline}
	p.Release(c, direct.Releases(domain, attempts), func(resp codec.Message, err error) {
		if err != nil {
			return
		}
		var left []core.Attempt
		for i, v := range resp.(*yardv1.OutcomeResponse).Verdicts {
			if fault.Code(v.Code).Retryable() {
				left = append(left, attempts[i])
			}
		}
		if len(left) > 0 && p.Run.Base().Err() == nil { // a call past its deadline fails
			time.AfterFunc(handBackAgain, func() { p.handBackUntil(deadline, domain, left) })
		}
	})
}
