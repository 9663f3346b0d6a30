package chaos_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// repeatRounds is how many times something is killed; YARD_KILL_ROUNDS in the environment says otherwise.
const repeatRounds = 4

// repeaters submit one task after the other, each until its result is known.
const repeaters = 64

// Every byHandOf-th submitter does without the SDK, waits handTry for an answer, and handWait before it sends the same again.
const byHandOf, handTry, handWait = 4, 2 * time.Second, 100 * time.Millisecond

// How long a frontend and NATS are stopped: a first try that a frontend holds is void by then.
const frontendStopped, natsStopped = 10 * time.Second, 8 * time.Second

// repeats is what the submitters and the worker have seen.
type repeats struct {
	t       *testing.T
	cluster *cluster.Cluster

	submitted, unknown atomic.Int64
	mu                 sync.Mutex
	accepted           map[string]string          // payloads, with the id that was answered
	ran                map[string]map[string]bool // the tasks that had a payload
}

// Every pairOf-th submitter and the next one submit the same payloads, which are unique keys too: one of them creates the task, and both are answered with it.
const pairOf = 8

// byKey submits tasks with unique keys.
func (r *repeats) byKey() func(ctx context.Context, payload string) (string, error) {
	client := r.cluster.Client(domain)
	return func(ctx context.Context, payload string) (string, error) {
		return client.Submit(ctx, yard.Task{
			Type: string(quick), Tasklist: tasklist, Payload: payload, Unique: &yard.Unique{Key: payload, For: time.Hour},
		})
	}
}

// bySDK submits through the SDK, which counts its tries.
func (r *repeats) bySDK() func(ctx context.Context, payload string) (string, error) {
	client := r.cluster.Client(domain)
	return func(ctx context.Context, payload string) (string, error) {
		return client.Submit(ctx, yard.Task{Type: string(quick), Tasklist: tasklist, Payload: payload})
	}
}

// byHand submits as a client does that knows one rule: send the same until there is an answer.
func (r *repeats) byHand() func(ctx context.Context, payload string) (string, error) {
	nc := r.cluster.Conn(domain)
	return func(ctx context.Context, payload string) (string, error) {
		request := fmt.Appendf(nil, `{"request_id":%q,"tasks":[{"type":%q,"tasklist":%q,"payload":%q}]}`, ids.NewRequestID(time.Now()).String(), quick, tasklist, payload)
		for {
			try, cancel := context.WithTimeout(ctx, handTry)
			msg, err := nc.RequestWithContext(try, topology.API(domain, "tasks.submit"), request)
			cancel()
			if ctx.Err() != nil {
				return "", fault.New(fault.Unknown, "no answer in time")
			}
			if err != nil {
				continue
			}
			refused := fault.Decode(msg.Header.Get(fault.HeaderCode), msg.Header.Get(fault.HeaderDescription), msg.Data)
			switch {
			case refused == nil:
				var answer yardv1.SubmitResponse
				if err := codec.Unmarshal(codec.JSON, msg.Data, &answer); err != nil {
					return "", err
				}
				return answer.Results[0].TaskId, nil
			case !refused.Code.Retryable() && refused.Code != fault.Unknown:
				return "", refused
			}
			pass(ctx, handWait)
		}
	}
}

// submit hands in tasks until ctx ends, and the last one to its end.
func (r *repeats) submit(ctx context.Context, who int, by func(ctx context.Context, payload string) (string, error)) {
	for i := 0; ctx.Err() == nil; i++ {
		payload := fmt.Sprintf("%d-%d", who, i)
		task, cancel := context.WithTimeout(context.Background(), submitTimeout)
		id, err := by(task, payload)
		cancel()
		r.submitted.Add(1)
		r.mu.Lock()
		switch code := fault.CodeOf(err); {
		case err == nil:
			if other, ok := r.accepted[payload]; ok && other != id {
				r.t.Errorf("%s is answered with %s and with %s", payload, other, id)
			}
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

// pass lets so much time go by.
func pass(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// disturb kills something, or stops it for a while, and tells what.
func (r *repeats) disturb(round int) string {
	c, victim := r.cluster, round%r.cluster.Instances(cluster.Frontend)
	switch round % 6 {
	case 1:
		c.Pause(cluster.Frontend, victim)
		pass(r.t.Context(), frontendStopped)
		c.Resume(cluster.Frontend, victim)
		return fmt.Sprintf("frontend-%d stopped for %v", victim, frontendStopped)
	case 3:
		c.KillNATS()
		c.StartNATS()
		return "NATS killed"
	case 5:
		c.Pause(cluster.NATS, 0)
		pass(r.t.Context(), natsStopped)
		c.Resume(cluster.NATS, 0)
		return fmt.Sprintf("NATS stopped for %v", natsStopped)
	}
	of := cluster.Frontend
	if round%6 == 4 { // one that says which keys are free
		of = cluster.History
	}
	c.Kill(of, victim)
	c.Restart(of, victim)
	return fmt.Sprintf("%s-%d killed", of, victim)
}

func rounds(t *testing.T) int {
	s := os.Getenv("YARD_KILL_ROUNDS")
	if s == "" {
		return repeatRounds
	}
	n, err := strconv.Atoi(s)
	testkit.NoError(t, err)
	return n
}

// TestI1_RepeatsOfKilledFrontends: frontends, an owner of history and NATS are killed or stopped for a while, and clients submit and repeat what got no
// answer. Each payload that was accepted runs as one task, the one that was answered, and no payload runs as two.
func TestI1_RepeatsOfKilledFrontends(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	rounds := rounds(t)
	c := cluster.Start(t, binaries, instances)
	r := &repeats{t: t, cluster: c, accepted: map[string]string{}, ran: map[string]map[string]bool{}}
	define(t, c, c.Client(domain), yard.TaskType{Name: string(quick), StartToClose: shortLeases.startToClose})

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
		testkit.Check(t, worker.Run(working))
	})
	submitting, stopSubmitting := context.WithCancel(context.Background())
	t.Cleanup(func() { stopSubmitting(); submitters.Wait(); stopWorking(); all.Wait() })
	for who := range repeaters {
		by, name := r.bySDK, who
		switch {
		case who%pairOf == 1:
			by = r.byKey
		case who%pairOf == 2:
			by, name = r.byKey, who-1
		case who%byHandOf == 0:
			by = r.byHand
		}
		submit := by()
		submitters.Go(func() { r.submit(submitting, name, submit) })
	}
	r.await("at the start")
	for round := range rounds {
		r.await(r.disturb(round))
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
	c.CheckAll()
}
