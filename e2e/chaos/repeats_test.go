package chaos_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// repeatRounds is how many times something is killed; YARD_KILL_ROUNDS in the environment says otherwise.
const repeatRounds = 6

// repeaters submit one task after the other, each until it is told what became of it.
const repeaters = 64

// repeats is what the submitters and the worker have seen.
type repeats struct {
	t       *testing.T
	cluster *cluster.Cluster

	submitted, unknown atomic.Int64
	mu                 sync.Mutex
	accepted           map[string]string          // payloads, with the id that was answered
	ran                map[string]map[string]bool // the tasks that had a payload
}

// submit hands in tasks until ctx ends, and the last one to its end.
func (r *repeats) submit(ctx context.Context, who int) {
	client := r.cluster.Client(domain)
	for i := 0; ctx.Err() == nil; i++ {
		payload := fmt.Sprintf("%d-%d", who, i)
		task, cancel := context.WithTimeout(context.Background(), submitTimeout)
		id, err := client.Submit(task, yard.Task{Type: string(quick), Tasklist: tasklist, Payload: payload})
		cancel()
		r.submitted.Add(1)
		r.mu.Lock()
		switch code := fault.CodeOf(err); {
		case err == nil:
			r.accepted[payload] = id
		case code == fault.Unknown:
			r.unknown.Add(1)
		case code != fault.Unavailable && code != fault.ResourceExhausted:
			r.t.Errorf("%s: %v", payload, err)
		}
		r.mu.Unlock()
	}
}

// await waits until submits go on, some of each submitter.
func (r *repeats) await(what string) {
	r.t.Helper()
	before := r.submitted.Load()
	testkit.Eventually(r.t, within, func() error {
		if n := r.submitted.Load() - before; n < 10*repeaters {
			return fmt.Errorf("%s: %d submits have ended since", what, n)
		}
		return nil
	})
}

func rounds(t *testing.T) int {
	s := os.Getenv("YARD_KILL_ROUNDS")
	if s == "" {
		return repeatRounds
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestI1_RepeatsOfKilledFrontends: frontends, and now and then NATS, are killed while clients submit and repeat what got no
// answer. Each payload that was accepted runs as one task, the one that was answered, and no payload runs as two.
func TestI1_RepeatsOfKilledFrontends(t *testing.T) {
	t.Parallel()
	rounds := rounds(t)
	c := cluster.Start(t, binaries, instances)
	r := &repeats{t: t, cluster: c, accepted: map[string]string{}, ran: map[string]map[string]bool{}}
	define(t, c, c.Client(domain), yard.TaskType{Name: string(quick)})

	working, stopWorking := context.WithCancel(context.Background())
	worker := yard.NewWorker(c.Client(domain), tasklist, yard.WithConcurrency(200))
	worker.HandleFunc(string(quick), func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
		var payload string
		if err := a.Payload.Decode(&payload); err != nil {
			return yard.Payload{}, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ran[payload] == nil {
			r.ran[payload] = map[string]bool{}
		}
		r.ran[payload][a.TaskID] = true
		return yard.Payload{}, nil
	})
	var all, submitters sync.WaitGroup
	all.Go(func() {
		if err := worker.Run(working); err != nil {
			t.Error(err)
		}
	})
	submitting, stopSubmitting := context.WithCancel(context.Background())
	t.Cleanup(func() { stopSubmitting(); submitters.Wait(); stopWorking(); all.Wait() })
	for who := range repeaters {
		submitters.Go(func() { r.submit(submitting, who) })
	}
	r.await("at the start")
	for round := range rounds {
		if round%4 == 3 {
			c.KillNATS()
			c.StartNATS()
			r.await("NATS killed")
			continue
		}
		victim := round % c.Instances(cluster.Frontend)
		c.Kill(cluster.Frontend, victim)
		c.Restart(cluster.Frontend, victim)
		r.await(fmt.Sprintf("frontend-%d killed", victim))
	}
	stopSubmitting()
	submitters.Wait()
	testkit.Eventually(t, within, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for payload := range r.accepted {
			if len(r.ran[payload]) == 0 {
				return fmt.Errorf("%s was accepted, and has not run", payload)
			}
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for payload, tasks := range r.ran {
		if id, ok := r.accepted[payload]; len(tasks) != 1 || ok && !tasks[id] {
			t.Errorf("%s, answered with %q, ran as %v", payload, id, tasks)
		}
	}
	t.Logf("%d rounds, %d submits, %d accepted, %d unknown, %d payloads have run", rounds, r.submitted.Load(), len(r.accepted), r.unknown.Load(), len(r.ran))
	c.Check()
}
