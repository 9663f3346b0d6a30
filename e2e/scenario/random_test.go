package scenario_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// narrow is the type with few slots.
const narrow, narrowSlots = "narrow", 2

// TestRandomVerbsKeepThePromises lets clients do what they like, lawful or not, to
// the same tasks: with short leases, late outcomes, repeats, foreign tokens, cancels.
// Then everything is drained, and each task's history is compared with the verdicts
// that were given. YARD_SEED repeats what is random here; how the clients meet is not.
func TestRandomVerbsKeepThePromises(t *testing.T) {
	testkit.Slow(t, "runs at random for seconds")
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: narrow, MaxConcurrency: narrowSlots})
		seed := testkit.Seed(t)
		book := &book{grants: map[string]*yardv1.PolledTask{}, tokens: w.tokens()}
		var clients sync.WaitGroup
		for range 6 {
			c := &client{world: w, book: book, random: rand.New(rand.NewPCG(seed.Uint64(), seed.Uint64()))}
			clients.Go(func() {
				for range 250 {
					if err := c.step(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		clients.Wait()
		if t.Failed() {
			return
		}
		book.drain(w)
		book.check(w)
	})
}

// client does one random thing after the other.
type client struct {
	*world
	*book
	random *rand.Rand
}

func (c *client) step() error {
	switch n := c.random.IntN(100); {
	case n < 20:
		return c.submitSome()
	case n < 50:
		return c.pollSome()
	case n < 60:
		return c.beatOne()
	case n < 66:
		return c.cancelOne()
	case n < 85:
		return c.completeOne()
	default:
		return c.failOne()
	}
}

func (c *client) submitSome() error {
	req := &yardv1.SubmitRequest{Tasklist: list}
	for range 1 + c.random.IntN(4) {
		task := &yardv1.NewTask{
			Type: []string{"wide", narrow}[c.random.IntN(2)], Priority: 1 + c.random.Int32N(5),
			StartToCloseMs: 100 + c.random.Int64N(2000),
			Retry:          &yardv1.RetryPolicy{MaxAttempts: 1 + c.random.Int32N(4), InitialIntervalMs: 1 + c.random.Int64N(50)},
		}
		if c.random.IntN(3) == 0 {
			task.DelayMs = 1 + c.random.Int64N(200)
		}
		if c.random.IntN(2) == 0 {
			task.HeartbeatTimeoutMs = 100 + c.random.Int64N(min(300, task.StartToCloseMs-99))
		}
		req.Tasks = append(req.Tasks, task)
	}
	resp, err := c.handIn(req)
	if err == nil {
		c.submitted(resp.TaskIDs())
	}
	return err
}

func (c *client) pollSome() error {
	tasks, err := c.poll(&yardv1.PollRequest{
		Tasklist: list, MaxTasks: 1 + c.random.Int32N(5), WaitMs: c.random.Int64N(30),
	})
	if err != nil && fault.CodeOf(err) != fault.Unavailable {
		return err
	}
	return c.granted(tasks)
}

// any chooses an attempt, most likely one of the latest; now and then its token is
// another one's.
func (c *client) any() (id, token string, ok bool) {
	p := c.attempt(c.random)
	if p == nil {
		return "", "", false
	}
	if c.random.IntN(20) == 0 {
		return p.TaskId, c.attempt(c.random).Token, true
	}
	return p.TaskId, p.Token, true
}

func (c *client) completeOne() error {
	id, token, ok := c.any()
	if !ok {
		return nil
	}
	resp, err := c.decide("tasks.complete", &yardv1.CompleteRequest{
		Tasks: []*yardv1.Completion{{TaskId: id, Token: token}},
	})
	return c.decided("completed", id, token, resp, err)
}

func (c *client) failOne() error {
	id, token, ok := c.any()
	if !ok {
		return nil
	}
	f := &yardv1.Failure{TaskId: id, Token: token, Message: "no"}
	what := "failed"
	switch c.random.IntN(4) {
	case 0:
		f.NotStarted, what = true, "handed_back"
	case 1:
		f.DelayMs = 1 + c.random.Int64N(100)
	case 2:
		f.NonRetryable = c.random.IntN(3) == 0
	}
	resp, err := c.decide("tasks.fail", &yardv1.FailRequest{Tasks: []*yardv1.Failure{f}})
	return c.decided(what, id, token, resp, err)
}

func (c *client) beatOne() error {
	id, token, ok := c.any()
	if !ok {
		return nil
	}
	resp, err := c.decide("tasks.heartbeat", &yardv1.HeartbeatRequest{
		Tasks: []*yardv1.Beat{{TaskId: id, Token: token}},
	})
	return c.decided("", id, token, resp, err)
}

func (c *client) cancelOne() error {
	id := c.task(c.random)
	if id == "" {
		return nil
	}
	resp, err := c.decide("tasks.cancel", &yardv1.CancelRequest{TaskIds: []string{id}})
	if err != nil {
		return err
	}
	switch code := resp.Verdicts[0].Code; code {
	case "OK":
		c.wished(id)
	case "FAILED_PRECONDITION":
	default:
		return fmt.Errorf("cancel of %s: %s %s", id, code, resp.Verdicts[0].Message)
	}
	return nil
}
