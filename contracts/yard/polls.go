package yard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/yard/internal/turns"
)

// poller is one poll loop of one tasklist.
type poller struct {
	*session
	tasklist string
	// list is its number among several tasklists, which share the slots. alone: there are no others.
	list  int
	alone bool
}

// pollers are the loops of the session: two of one tasklist alone, else one of each.
func (s *session) pollers() []*poller {
	lists := s.worker.tasklists
	if len(lists) == 1 {
		one := &poller{session: s, tasklist: lists[0], alone: true}
		return slices.Repeat([]*poller{one}, pollLoops)
	}
	all := make([]*poller, len(lists))
	for i, tasklist := range lists {
		all[i] = &poller{session: s, tasklist: tasklist, list: i}
	}
	return all
}

// run returns nil once ctx has ended, and an error only when the connection is closed for good.
func (p *poller) run(ctx context.Context) error {
	barren := 0 // polls in a row that failed, or came back too soon without work
	for {
		g := p.reserve(ctx)
		if g.Tasks == 0 {
			return nil
		}
		end := p.poll(ctx, g)
		if !p.alone {
			end.withdrawn = p.dealer.done(p.list, len(end.tasks)) && len(end.tasks) == 0
		}
		p.begin(ctx, end.tasks, g.Tasks)
		switch {
		case end.err != nil && p.engine.connClosed():
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
			p.logFailure(barren, end.err)
			barren++
		case end.early:
			// An owner that is leaving answers at once; so may one that is ill.
			barren++
		default:
			if barren > failuresLoggedFrom {
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

// reserve waits for slots for the next poll. It returns no tasks if ctx has ended.
func (p *poller) reserve(ctx context.Context) given {
	if !p.alone {
		return p.dealer.reserve(ctx, p.list)
	}
	return given{Turn: turns.Turn{Tasks: p.slots.reserve(ctx, requestTasksMax)}, ctx: ctx}
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

// poll asks for up to as many tasks as slots were given.
func (p *poller) poll(ctx context.Context, g given) (end pollEnd) {
	wait := pace.Of(p.worker.cfg.pollWait)
	if g.Short {
		wait = min(wait, turns.Length)
	}
	end.asked = time.Now()
	req := &yardv1.PollRequest{
		Tasklist: p.tasklist,
		MaxTasks: int32Of(g.Tasks),
		WaitMs:   wait.Milliseconds(),
		Types:    p.types,
		Worker:   p.worker.cfg.identity,

		WorkerVersion: p.worker.cfg.version,
		WorkerId:      p.signs.ID(),
	}
	resp, err := p.engine.poll(g.ctx, req)
	end.tasks, end.drain, end.err = resp.GetTasks(), resp.GetDrain(), err
	if end.err == nil && ctx.Err() == nil {
		p.hear(end.drain, end.asked)
	}
	end.early = len(end.tasks) == 0 && time.Since(end.asked) < wait/2
	return end
}

// failuresLoggedFrom is the failed poll that is worth a warning; those before it are
// what a change of owners looks like.
const failuresLoggedFrom = 3

func (s *session) logFailure(barren int, err error) {
	if barren == failuresLoggedFrom || !fault.CodeOf(err).Retryable() && barren == 0 {
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
