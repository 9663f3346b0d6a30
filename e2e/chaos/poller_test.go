package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/chaos/audit"
)

const (
	pollTasks = 100
	pollWait  = time.Second
	// quickRun is how long an attempt may run that is reported with others.
	quickRun = 30 * time.Millisecond
	// outcomeTry bounds one request with outcomes, outcomeFor all its repeats: longer
	// than any pause.
	outcomeTry = 4 * time.Second
	outcomeFor = 25 * time.Second
)

// poller is a worker that talks to the engine by itself, so that it knows when it
// got an attempt and hears every verdict. Its methods run on several goroutines.
type poller struct {
	*traffic
	name   string
	client *yard.Client
	rand   *rand.Rand // of run only
}

// held is one attempt in a worker's hands.
type held struct {
	wish  *wish
	grant *audit.Grant
	token string
	// number is unique among all attempts of the poller.
	number int
}

// run polls until the end. Each poll has a name of its own, by which the archive's
// attempts are recognised.
func (p *poller) run() {
	got := 0
	for n := 0; p.working.Err() == nil; n++ {
		name := fmt.Sprintf("%s/%d", p.name, n)
		asked := time.Now()
		tasks, err := p.client.Wire().Poll(p.working, &yardv1.PollRequest{Tasklist: tasklist, MaxTasks: pollTasks, WaitMs: pollWait.Milliseconds(), Worker: name})
		if err != nil {
			wait(p.working, 50*time.Millisecond)
			continue
		}
		all := p.take(tasks, name, asked, &got)
		pace := time.Duration(p.rand.Int64N(int64(quickRun)))
		p.crew.Go(func() { p.serve(all, pace) })
	}
}

// take enters the grants of one poll into the ledger. None was sent before the poll was asked, so their leases
// last from then at least.
func (p *poller) take(tasks []*yardv1.PolledTask, name string, asked time.Time, got *int) []held {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []held
	for _, task := range tasks {
		var key string
		_ = json.Unmarshal(task.Payload.GetData(), &key) // what is no key is unknown
		w := p.byKey[key]
		if w == nil {
			p.t.Errorf("%s got a task that was never submitted: %v", name, task)
			continue
		}
		g := &audit.Grant{Worker: name, TaskID: task.TaskId, At: now, LeaseEnd: asked.Add(time.Duration(task.TimeoutMs) * time.Millisecond)}
		w.account.Grants = append(w.account.Grants, g)
		p.pace.moved(task.TaskId, now, handsOut, both)
		if w.due {
			p.pace.handed(task.TaskId, now)
			w.due = false
		}
		*got++
		all = append(all, held{w, g, task.Token, *got})
	}
	return all
}

// serve runs the attempts of one poll: the quick ones are reported together.
func (p *poller) serve(all []held, pace time.Duration) {
	var quick []held
	for _, h := range all {
		if h.wish.runs < quickRun {
			quick = append(quick, h)
			continue
		}
		p.crew.Go(func() {
			wait(context.Background(), h.wish.runs/2)
			if h.wish.cancelRunning {
				p.cancel(p.client, h.wish, h.grant.TaskID)
			}
			wait(context.Background(), h.wish.runs/2)
			p.report([]held{h})
		})
	}
	if len(quick) > 0 {
		wait(context.Background(), pace)
		p.report(quick)
	}
}

// report sends the outcomes of attempts.
func (p *poller) report(all []held) {
	var failed, completed []held
	p.mu.Lock()
	for _, h := range all {
		if h.wish.fails > 0 {
			failed = append(failed, h)
		} else {
			completed = append(completed, h)
		}
	}
	p.mu.Unlock()
	p.crew.Go(func() { p.repeat(audit.Fail, failed, p.fail) })
	p.repeat(audit.Complete, completed, p.complete)
}

// repeat sends outcomes of one kind until each has a verdict, or for long enough.
func (p *poller) repeat(k audit.OutcomeKind, all []held, send func(context.Context, []held) ([]*yardv1.Verdict, error)) {
	for deadline := time.Now().Add(outcomeFor); len(all) > 0 && time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(context.Background(), outcomeTry)
		sent := p.sends(k, all)
		verdicts, err := send(ctx, all)
		cancel()
		if all = p.hear(all, sent, verdicts, err); len(all) > 0 {
			wait(context.Background(), 50*time.Millisecond)
		}
	}
}

// sends enters the outcomes into the ledger and returns their places in it.
func (p *poller) sends(k audit.OutcomeKind, all []held) []*audit.Outcome {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := make([]*audit.Outcome, len(all))
	for i, h := range all {
		o := audit.Outcome{Kind: k, SentAt: now}
		if k == audit.Complete {
			o.Result = p.result(h)
		}
		h.grant.Outcomes = append(h.grant.Outcomes, o)
		sent[i] = &h.grant.Outcomes[len(h.grant.Outcomes)-1]
	}
	return sent
}

func (p *poller) result(h held) string {
	return fmt.Sprintf("%s by %s, %d", h.wish.account.Key, h.grant.Worker, h.number)
}

// hear enters the verdicts and returns what has to be repeated.
func (p *poller) hear(all []held, sent []*audit.Outcome, verdicts []*yardv1.Verdict, err error) []held {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	var again []held
	for i, h := range all {
		o := sent[i]
		o.AnsweredAt, o.Code = now, string(fault.CodeOf(err))
		if err == nil {
			o.Code = verdicts[i].Code
		}
		switch code := fault.Code(o.Code); {
		case o.Code != "OK":
			if code == fault.Unknown || code.Retryable() {
				again = append(again, h)
			}
		case o.Kind == audit.Fail:
			h.wish.fails--
		default:
			p.done++
			p.pace.moved(h.grant.TaskID, now, completes, both)
		}
	}
	return again
}

func (p *poller) complete(ctx context.Context, all []held) ([]*yardv1.Verdict, error) {
	completions := make([]*yardv1.Completion, len(all))
	for i, h := range all {
		result, err := json.Marshal(p.result(h))
		if err != nil {
			return nil, err
		}
		completions[i] = &yardv1.Completion{TaskId: h.grant.TaskID, Token: h.token, Result: &yardv1.Payload{Data: result}}
	}
	return p.client.Wire().Complete(ctx, completions)
}

func (p *poller) fail(ctx context.Context, all []held) ([]*yardv1.Verdict, error) {
	failures := make([]*yardv1.Failure, len(all))
	for i, h := range all {
		failures[i] = &yardv1.Failure{TaskId: h.grant.TaskID, Token: h.token, Message: errWanted.Error(), DelayMs: h.wish.wait.Milliseconds()}
	}
	return p.client.Wire().Fail(ctx, failures)
}
