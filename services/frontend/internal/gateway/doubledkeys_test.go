package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI1_NoKeyIsDoubled drives two frontends on one log that stores or not, now or a minute later, and acknowledges or not, as it likes.
// Clients submit tasks with few keys and repeat that at either frontend until they are answered; owners end tasks, and the log forgets keys that are free. In the end
// no task counts twice, what was answered as created is stored, and each task of a key was stored when the one before had ended.
func TestI1_NoKeyIsDoubled(t *testing.T) {
	testkit.Slow(t, "stores thousands of tasks at random")
	random := testkit.Seed(t)
	for range 25 {
		seed := random.Uint64()
		synctest.Test(t, func(t *testing.T) { contend(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

// contention is the keys of one run.
type contention struct {
	log    *memLog
	choose func(int) int
	ended  map[ids.TaskID]time.Time
}

func contend(t *testing.T, random *rand.Rand) {
	var mu sync.Mutex
	choose := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	c := &contention{choose: choose, ended: map[ids.TaskID]time.Time{}}
	a := uniqueRig(t, nil, c.knows)
	b := uniqueRig(t, a, c.knows)
	c.log = a.log
	a.log.atomicFault = func(late func()) (bool, error) {
		switch choose(8) {
		case 0:
			return true, natslog.ErrOutcomeUnknown
		case 1:
			return false, natslog.ErrOutcomeUnknown
		case 2: // it is still on its way
			time.AfterFunc(time.Duration(choose(200_000))*time.Millisecond, func() {
				a.log.mu.Lock()
				defer a.log.mu.Unlock()
				late()
			})
			return false, natslog.ErrOutcomeUnknown
		case 3:
			return false, natslog.ErrNotStored
		}
		return true, nil
	}
	var all sync.WaitGroup
	created := map[string]bool{}
	for range 30 {
		all.Go(func() {
			time.Sleep(time.Duration(choose(400_000)) * time.Millisecond)
			var keys []string
			for i := range 4 {
				if choose(2) == 0 {
					keys = append(keys, fmt.Sprint("key ", i))
				}
			}
			if len(keys) == 0 {
				return
			}
			req := withID(keyed(keys...), choose(2) == 0)
			for _, task := range req.Tasks {
				task.UniqueForMs = keptFor
			}
			answer := c.persist([]*rig{a, b}, req)
			mu.Lock()
			defer mu.Unlock()
			for _, r := range answer.GetResults() { // one that exists is as good as created
				created[r.TaskId] = true
			}
		})
	}
	for range 200 {
		time.Sleep(3 * time.Second)
		c.own(t)
	}
	all.Wait()
	time.Sleep(4 * time.Minute) // all that was on its way has come
	c.check(t, created)
}

// keptFor is for how long tasks keep their keys after their end, ms.
const keptFor = 10_000

// knows lets the owners know which tasks have ended.
func (c *contention) knows(d *Deps) {
	get := d.Owners.HistoryGet
	d.Owners.HistoryGet = func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
		resp, err := get(ctx, p, req)
		c.log.mu.Lock()
		defer c.log.mu.Unlock()
		if at, ok := c.ended[ids.TaskID(req.TaskId)]; ok && resp.GetTask() != nil {
			resp.Task.FinishedAtMs, resp.Task.UniqueForMs = at.UnixMilli(), keptFor
		}
		return resp, err
	}
}

// persist repeats a request until it is answered with results, or refused for good.
func (c *contention) persist(frontends []*rig, req *yardv1.SubmitRequest) *yardv1.SubmitResponse {
	for range 100 {
		switch o, ok := submitOnce(frontends, req, c.choose); {
		case !ok && c.choose(3) == 0:
			return nil // it has given up
		case !ok:
		case o.err == nil:
			return o.resp.(*yardv1.SubmitResponse)
		case fault.CodeOf(o.err) == fault.FailedPrecondition:
			return nil
		}
	}
	return nil
}

// own does what owners do: some tasks end, and keys are forgotten that have been free for long enough.
func (c *contention) own(t *testing.T) {
	counting := c.log.counting()
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	for i := range 4 {
		key := fmt.Sprint("key ", i)
		p := topology.UniqueKeyPartition("shop", key, topology.Partitioning{History: rigPartitions})
		subject := topology.UniqueKey(p, "shop", key)
		seq := c.log.lastFor(p, subject)
		if seq == 0 {
			continue
		}
		var said logv1.UniqueKey
		testkit.NoError(t, said.UnmarshalVT(c.log.partitions[p][seq-1].Data))
		id := ids.TaskID(said.TaskId)
		switch {
		case said.FreeAtMs == 0 && counting[p][id] > 0 && c.ended[id].IsZero() && c.choose(4) == 0:
			said.FreeAtMs = time.Now().UnixMilli() + keptFor
			c.ended[id] = time.Now()
			c.log.store(p, natslog.Msg{Subject: subject, Data: testkit.Encoded(t, &said)})
		case said.FreeAtMs != 0 && time.Since(time.UnixMilli(said.FreeAtMs)) > topology.UniqueKeyKept:
			c.log.mu.Unlock()
			c.log.forgetsKey("shop", key)
			c.log.mu.Lock()
		}
	}
}

// check looks at what was stored.
func (c *contention) check(t *testing.T, created map[string]bool) {
	t.Helper()
	found := map[string]int{}
	for _, of := range c.log.counting() {
		for id, n := range of {
			found[id.String()] += n
		}
	}
	for id, n := range found {
		if n > 1 {
			t.Errorf("task %s is stored %d times", id, n)
		}
	}
	for id := range created {
		if found[id] == 0 {
			t.Errorf("task %s was created, or exists, and is lost", id)
		}
	}
	if len(created) == 0 {
		t.Error("nothing was created")
	}
	last := map[string]ids.TaskID{}
	for p, msgs := range c.log.partitions {
		for i, m := range submits(msgs) {
			at := c.log.storedAt[p][i]
			for _, r := range batchOf(m.Data).Tasks {
				id := ids.TaskID(r.Id)
				if at.Sub(id.Time()) > time.Duration(r.WithinMs)*time.Millisecond {
					continue // void
				}
				before, any := last[r.Unique.Key]
				if end, ok := c.ended[before]; any && (!ok || end.UnixMilli()+keptFor > at.UnixMilli()) {
					t.Errorf("task %v was stored while task %v had its key %q", id, before, r.Unique.Key)
				}
				last[r.Unique.Key] = id
			}
		}
	}
}
