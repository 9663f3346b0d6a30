package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	plainType, beatingType = "plain", "beating"
	// longest is how long an attempt may take; silence is how long one of the beating type may be without a heartbeat.
	longest, beatingLongest, silence = 3 * time.Second, 20 * time.Second, 1500 * time.Millisecond
	// recentTasks and keysAtOnce are how many tasks and keys are played with at a time, submitsPerKey how often a key is submitted: a
	// life must be short enough to be checked.
	recentTasks, keysAtOnce, submitsPerKey = 16, 6, 12
	// operators and workers are how many clients of each kind there are.
	operators, workers = 4, 5
	// within bounds what happens soon in a healthy run.
	within = 90 * time.Second
)

// typeName is the type of a task that is submitted: all of a key are of one, since none replaces a task of another.
func typeName(in input) string {
	if in.key == "" && in.value%3 == 0 || strings.HasSuffix(in.key, "0") || strings.HasSuffix(in.key, "5") {
		return beatingType
	}
	return plainType
}

// define makes the types, once a frontend knows of the domain.
func define(t *testing.T, admin *yard.Admin, client *yard.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	testkit.Eventually(t, within, func() error {
		_, err := admin.PutDomain(ctx, yard.Domain{Name: domain})
		return err
	})
	retry := &yard.RetryPolicy{MaxAttempts: 1000, InitialInterval: 20 * time.Millisecond, MaxInterval: 50 * time.Millisecond}
	for _, tt := range []yard.TaskType{
		{Name: plainType, StartToClose: longest, Retry: retry},
		{Name: beatingType, StartToClose: beatingLongest, HeartbeatTimeout: silence, Retry: retry},
	} {
		testkit.Eventually(t, within, func() error {
			_, err := client.PutType(ctx, tt)
			return err
		})
	}
}

// traffic is what the clients share.
type traffic struct {
	h     *history
	value atomic.Int64

	mu     sync.Mutex
	rand   *rand.Rand
	recent []string
	keys   []string
	used   []int
	made   int
	// tokens are of attempts that were reported already.
	tokens []input

	stopping context.Context
	stop     context.CancelFunc
	all      sync.WaitGroup
}

// start has clients work until stop: they finish what they are at.
func start(t *testing.T, h *history, connect func() *nats.Conn) *traffic {
	t.Helper()
	r := &traffic{h: h, rand: testkit.Seed(t), keys: make([]string, keysAtOnce), used: make([]int, keysAtOnce)}
	r.stopping, r.stop = context.WithCancel(context.Background())
	for i := range operators + workers {
		c := &client{nc: connect(), h: h, no: i}
		r.all.Go(func() {
			for n := 0; r.stopping.Err() == nil; n++ {
				if i < operators {
					r.operate(c)
				} else {
					r.work(c, n)
				}
			}
		})
	}
	t.Cleanup(r.end)
	return r
}

func (r *traffic) end() {
	r.stop()
	r.all.Wait()
}

func (r *traffic) dice(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rand.IntN(n)
}

// some is a recent task; "" if there is none yet.
func (r *traffic) some() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.recent) == 0 {
		return ""
	}
	return r.recent[r.rand.IntN(len(r.recent))]
}

func (r *traffic) note(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.recent, id) {
		return
	}
	if len(r.recent) < recentTasks {
		r.recent = append(r.recent, id)
		return
	}
	r.recent[r.rand.IntN(recentTasks)] = id
}

// forget drops a task that has ended, mostly.
func (r *traffic) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rand.IntN(3) > 0 {
		r.recent = slices.DeleteFunc(r.recent, func(o string) bool { return o == id })
	}
}

// key is one of the keys of the moment.
func (r *traffic) key() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.rand.IntN(keysAtOnce)
	if r.used[i]++; r.keys[i] == "" || r.used[i] > submitsPerKey {
		r.made++
		r.keys[i], r.used[i] = fmt.Sprintf("order-%d", r.made), 0
	}
	return r.keys[i]
}

// pause waits a moment, so that the calls of others come between.
func (r *traffic) pause(most time.Duration) {
	select {
	case <-time.After(time.Duration(r.dice(int(most)))):
	case <-r.stopping.Done():
	}
}

// operate does one thing that a client of tasks does.
func (r *traffic) operate(c *client) {
	ctx := context.Background() // what is begun is finished: each request has a limit of its own
	defer r.pause(30 * time.Millisecond)
	id := r.some()
	if id == "" || r.dice(100) < 30 {
		r.submit(ctx, c)
		return
	}
	switch dice := r.dice(74); {
	case dice >= 70:
		c.redrive(ctx, id)
	case dice < 22:
		c.get(ctx, id)
	case dice < 30:
		c.cancel(ctx, id)
	case dice < 45:
		c.update(ctx, r.change(input{task: id}))
	default: // several who have read the same task
		if task, ok := c.get(ctx, id); ok && task.GetState() == yardv1.TaskState_TASK_STATE_DEAD && r.dice(4) > 0 {
			c.redrive(ctx, id)
		} else if ok && task.GetState().Finished() {
			r.forget(id)
		} else if task != nil {
			c.update(ctx, r.change(input{task: id, ifRevision: task.Revision}))
		}
	}
}

func (r *traffic) submit(ctx context.Context, c *client) {
	in := input{value: r.value.Add(1)}
	if r.dice(10) == 0 {
		in.when = far
	}
	if r.dice(3) > 0 {
		in.key = r.key()
		in.on = []string{"", "", rejected, replaced}[r.dice(4)]
	}
	if id := c.submit(ctx, in); id != "" {
		r.note(id)
	}
}

func (r *traffic) change(in input) input {
	in.value = r.value.Add(1)
	in.when = []when{same, same, soon, soon, far}[r.dice(5)]
	return in
}

// work polls, and reports what it was given in one way or another.
func (r *traffic) work(c *client, n int) {
	ctx := context.Background()
	for _, p := range c.poll(ctx, fmt.Sprintf("w%d-%d", c.no, n), int32(1+r.dice(3))) {
		r.note(p.TaskId)
		r.pause(100 * time.Millisecond)
		r.attempt(ctx, c, p)
	}
	if in, ok := r.old(); ok {
		r.say(ctx, c, in)
	}
}

func (r *traffic) attempt(ctx context.Context, c *client, p *yardv1.PolledTask) {
	in := input{task: p.TaskId, token: p.Token}
	r.mu.Lock()
	r.tokens = append(r.tokens, in)
	r.mu.Unlock()
	switch dice := r.dice(100); {
	case dice < 8: // it is forgotten
	case dice < 20:
		for range 1 + r.dice(3) {
			c.beat(ctx, p.TaskId, p.Token)
			r.pause(silence * 3 / 4)
		}
		r.say(ctx, c, in)
	case dice < 45:
		c.complete(ctx, p.TaskId, p.Token)
	default:
		in.when = []when{same, same, far}[r.dice(3)]
		in.final = r.dice(5) == 0
		c.fail(ctx, in)
	}
}

// old is an attempt that was reported before, now and then.
func (r *traffic) old() (input, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tokens) == 0 || r.rand.IntN(3) > 0 {
		return input{}, false
	}
	r.tokens = r.tokens[max(0, len(r.tokens)-recentTasks):]
	return r.tokens[r.rand.IntN(len(r.tokens))], true
}

// say reports an attempt in any way.
func (r *traffic) say(ctx context.Context, c *client, in input) {
	switch r.dice(3) {
	case 0:
		c.complete(ctx, in.task, in.token)
	case 1:
		c.fail(ctx, in)
	default:
		c.beat(ctx, in.task, in.token)
	}
}
