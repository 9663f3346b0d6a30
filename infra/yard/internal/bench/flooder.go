package bench

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// flooder is the domain that floods in W7: producers that do not rest, and polls as those of a drain.
type flooder struct {
	load     *load
	rate     float64 // tasks per second that are offered at most
	lasts    time.Duration
	requests atomic.Int64 // that are due
	refused  atomic.Int64 // tries of requests
	// accepted and completed are the tasks at the end of the flood; more follow.
	accepted, completed int64
	submitters, workers []*yard.Client
}

// newFlooder makes one that offers w7Times the capacity, in tasks per second, for so long.
func (l *load) newFlooder(capacity float64, lasts time.Duration) (*flooder, error) {
	f := &flooder{
		load: &load{target: l.target, progress: l.progress, brief: true},
		rate: max(capacity*w7Times, 1), lasts: lasts,
	}
	from := len(l.target.conns)
	var err error
	if f.submitters, err = l.target.clients(floodShape.domains); err != nil {
		return nil, err
	}
	for _, nc := range l.target.conns[from:] {
		if err := f.countRefusals(nc); err != nil {
			return nil, err
		}
	}
	f.workers, err = l.target.clients(floodShape.domains)
	return f, err
}

// countRefusals listens to the answers on a connection: the SDK repeats a refused request by itself, when the refusal says so.
func (f *flooder) countRefusals(nc *nats.Conn) error {
	inbox := nc.NewRespInbox()
	_, err := nc.Subscribe(inbox[:strings.LastIndexByte(inbox, '.')]+".*", func(m *nats.Msg) {
		if m.Header.Get(fault.HeaderCode) == string(fault.ResourceExhausted) {
			f.refused.Add(1)
		}
	})
	return err
}

// bound gives the domain a quota of tasks per second, 0 = any number, and waits until a frontend knows.
func (f *flooder) bound(ctx context.Context, quota int64) error {
	admin := f.workers[0].Admin()
	if _, err := admin.PutDomain(ctx, yard.Domain{
		Name: floodDomain, Description: "yard bench", Retention: topology.RetentionMin, Quota: yard.Quota{SubmitTasksPerSecond: quota},
	}); err != nil {
		return fmt.Errorf("domain %s: %w", floodDomain, err)
	}
	return waitFor(ctx, stallAfter, 10*time.Millisecond, func() (bool, string, error) {
		d, err := admin.GetDomain(ctx, floodDomain)
		return (d.Use != nil) == (quota > 0), fmt.Sprintf("the quota of domain %s is not %d", floodDomain, quota), err
	})
}

// run floods, and returns when all that was accepted is completed.
func (f *flooder) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var polling, producing sync.WaitGroup
	f.load.poll(ctx, cancel, &polling, f.workers)
	began := time.Now()
	for i := range w7Times * floodShape.producers {
		producing.Go(func() {
			if err := f.produce(ctx, f.submitters[i%len(f.submitters)], began); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	sleepUntil(ctx, began.Add(f.lasts))
	f.accepted, f.completed = f.load.accepted.n.Load(), f.load.completed.n.Load()
	producing.Wait()
	f.load.tasks = int(f.load.accepted.n.Load())
	f.load.await(ctx, cancel)
	failed := context.Cause(ctx)
	f.load.over.Store(true)
	polling.Wait()
	return cmp.Or(failed, f.load.proof())
}

// produce submits requests, each when it is due and the producer's last one is stored, until the flood ends.
func (f *flooder) produce(ctx context.Context, c *yard.Client, began time.Time) error {
	for {
		n := int(f.requests.Add(1)) - 1
		due := began.Add(time.Duration(float64(n*floodShape.request) / f.rate * float64(time.Second)))
		if !sleepUntil(ctx, due) || time.Since(began) >= f.lasts {
			return nil
		}
		ids, err := c.SubmitMany(ctx, f.load.target.some(n*floodShape.request, floodShape.request))
		f.load.accepted.add(ids)
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
	}
}

// report says what the flood was.
func (f *flooder) report(out *report.Flood) {
	perSecond := func(tasks int64) float64 { return report.Round(float64(tasks) / f.lasts.Seconds()) }
	out.Refused = f.refused.Load()
	out.OfferedPerSecond = perSecond(int64(f.load.tasks) + out.Refused*int64(floodShape.request))
	out.AcceptedPerSecond, out.CompletedPerSecond = perSecond(f.accepted), perSecond(f.completed)
}
