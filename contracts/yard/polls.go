package yard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// poller is one poll loop, of one tasklist, or of several by weight.
type poller struct {
	*session
	tasklist string
	weighted []*yardv1.PolledTasklist
	// shares: there are other tasklists, so free slots are asked for a few at a time and in turn.
	shares bool
	// ask is how many slots the next poll wants at most.
	ask int
}

// pollers are the loops of the session: two where there is one tasklist or one request polls all, else one for each.
func (s *session) pollers() []*poller {
	lists := s.worker.tasklists
	if weighted := s.worker.weighted(); weighted != nil {
		one := poller{session: s, weighted: weighted, ask: s.worker.cfg.pollBatch}
		another := one
		return []*poller{&one, &another}
	}
	if len(lists) == 1 {
		lists = slices.Repeat(lists, pollLoops)
	}
	all := make([]*poller, len(lists))
	for i, tasklist := range lists {
		all[i] = &poller{session: s, tasklist: tasklist, ask: s.worker.cfg.pollBatch}
		if len(s.worker.tasklists) > 1 {
			all[i].shares, all[i].ask = true, 1
		}
	}
	return all
}

// weighted are the tasklists of one request that polls all; nil where each is polled independently.
func (w *Worker) weighted() []*yardv1.PolledTasklist {
	if w.cfg.weights == nil || len(w.tasklists) == 1 {
		return nil
	}
	all := make([]*yardv1.PolledTasklist, len(w.tasklists))
	for i, name := range w.tasklists {
		all[i] = &yardv1.PolledTasklist{Name: name, Weight: int32Of(max(w.cfg.weights[name], 1))}
	}
	return all
}

// run returns nil once ctx has ended, and an error only when the connection is closed for good.
func (p *poller) run(ctx context.Context) error {
	barren := 0 // polls in a row that failed, or came back too soon without work
	for {
		n := p.reserve(ctx)
		if n == 0 {
			return nil
		}
		end := p.poll(ctx, n)
		p.begin(ctx, end.tasks, n)
		p.adapt(len(end.tasks), n)
		switch {
		case end.err != nil && p.engine.gone():
			return fmt.Errorf("poll: %w", closedForGood())
		case ctx.Err() != nil:
			return nil
		case end.withdrawn:
			continue
		case end.drain != nil:
			barren = 0
			if !pause(ctx, drainedPause-time.Since(end.asked)) {
				return nil
			}
			continue
		case end.err != nil:
			p.complain(barren, end.err)
			barren++
		case end.early:
			// An owner that is leaving answers at once; so may one that is ill.
			barren++
		default:
			if barren > complainFrom {
				p.log.Info("polls are answered again")
			}
			barren = 0
			continue
		}
		if !pause(ctx, backoff(barren-1, retryAfterOf(end.err))) {
			return nil
		}
	}
}

// reserve waits for slots for the next poll. It returns 0 when ctx has ended.
func (p *poller) reserve(ctx context.Context) int {
	if p.shares {
		return p.turns.reserve(ctx, p.slots, p.ask)
	}
	return p.slots.reserve(ctx, p.ask)
}

// pollEnd is what came of a poll.
type pollEnd struct {
	tasks []*yardv1.PolledTask
	err   error
	// early: it came back without work before half of its time was over.
	early bool
	// drain is that of the worker, asked when.
	drain *yardv1.WorkerDrain
	asked time.Time
	// withdrawn: it was ended without work, since another tasklist wants its slots.
	withdrawn bool
}

// poll asks for up to n tasks.
func (p *poller) poll(ctx context.Context, n int) (end pollEnd) {
	wait, leave := p.worker.cfg.pollWait, func() bool { return false }
	if p.shares {
		ctx, wait, leave = p.turns.enter(ctx, wait)
	}
	end.asked = time.Now()
	req := &yardv1.PollRequest{
		Tasklist:  p.tasklist,
		Tasklists: p.weighted,
		MaxTasks:  int32Of(n),
		WaitMs:    wait.Milliseconds(),
		Types:     p.types,
		Worker:    p.worker.cfg.identity,
	}
	req.WorkerVersion = p.worker.cfg.version
	req.WorkerId = p.signs.id()
	p.drained.polling()
	defer p.drained.polled()
	resp, err := p.engine.poll(ctx, req)
	end.tasks, end.drain, end.err = resp.GetTasks(), resp.GetDrain(), err
	if end.err == nil && ctx.Err() == nil {
		p.hear(end.drain, end.asked)
	}
	end.early = len(end.tasks) == 0 && time.Since(end.asked) < wait/2
	end.withdrawn = leave() && len(end.tasks) == 0
	return end
}

// adapt sets what the next poll asks for: twice as much where the last got all it asked for, one where it got nothing.
// So tasklists without work hold few slots while they wait.
func (p *poller) adapt(got, asked int) {
	switch {
	case !p.shares:
	case got >= asked:
		p.ask = min(2*asked, p.worker.cfg.pollBatch)
	default:
		p.ask = max(got, 1)
	}
}

// complainFrom is the failed poll that is worth a warning; those before it are
// what a change of owners looks like.
const complainFrom = 3

func (s *session) complain(barren int, err error) {
	if barren == complainFrom || !fault.CodeOf(err).Retryable() && barren == 0 {
		s.log.Warn("polls fail; they are tried on", "error", err)
		return
	}
	s.log.Debug("a poll failed", "error", err)
}

// begin starts the tasks of a poll that had reserved n slots, and frees the
// slots it did not use. While the worker stops nothing is started any more.
func (s *session) begin(ctx context.Context, tasks []*yardv1.PolledTask, n int) {
	if ctx.Err() != nil {
		s.slots.cancel(n)
		s.returnUnstarted(tasks)
		return
	}
	if extra := len(tasks) - n; extra > 0 {
		s.log.Error("the engine sent more tasks than were asked for", "asked", n, "sent", len(tasks))
		s.returnUnstarted(tasks[n:])
		tasks = tasks[:n]
	}
	if unused := n - len(tasks); unused > 0 {
		s.slots.cancel(unused)
	}
	for _, t := range tasks {
		s.start(t)
	}
}

func closedForGood() error {
	return errors.Join(fault.New(fault.Unavailable, "the connection to NATS is closed"), nats.ErrConnectionClosed)
}
