package scenario_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// partners are handlers that count by themselves how many of them run, of each group and together.
type partners struct {
	*world
	mu          sync.Mutex
	groups      map[string]*meter
	pay, domain meter
	// gates let one handler of a group end for each that is sent, or all where it is closed; free is that of tasks without a limit.
	gates map[string]chan struct{}
	free  chan struct{}
	// open: all gates are closed, also those to come.
	open bool
	// types are those of the tasks, in turn.
	types []string
	ids   []string
}

func newPartners(w *world, types ...string) *partners {
	return &partners{world: w, types: types, groups: map[string]*meter{}, gates: map[string]chan struct{}{}, free: make(chan struct{})}
}

// group is the meter and the gate of a group.
func (p *partners) group(name string) (*meter, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.groups[name] == nil {
		p.groups[name], p.gates[name] = &meter{}, make(chan struct{})
		if p.open {
			close(p.gates[name])
		}
	}
	return p.groups[name], p.gates[name]
}

func (p *partners) register(worker *yard.Worker) {
	for _, typ := range []string{"pay", "report"} {
		yard.Handle(worker, typ, func(ctx context.Context, group string) (struct{}, error) {
			m, gate := p.group(group)
			return struct{}{}, hold(ctx, gate, m, &p.pay, &p.domain)
		})
	}
	yard.Handle(worker, "free", func(ctx context.Context, _ struct{}) (struct{}, error) {
		return struct{}{}, hold(ctx, p.free, &p.domain)
	})
}

// submit hands in n tasks of a group, in both tasklists.
func (p *partners) submit(group string, n int) {
	p.t.Helper()
	tasks := make([]*yardv1.NewTask, n)
	for i := range tasks {
		tasks[i] = &yardv1.NewTask{
			Type: p.types[i%len(p.types)], Tasklist: []string{list, list, otherList, otherList}[i%4], Group: group,
			Payload: jsonPayload(fmt.Sprintf("%q", group)),
		}
	}
	p.ids = append(p.ids, p.world.submit(tasks...)...)
}

// atMost fails if more than so many ever ran at once.
func (p *partners) atMost(what string, m *meter, most int) {
	p.t.Helper()
	if _, was := m.read(); was > most {
		p.t.Errorf("of %s %d ran at once, want at most %d", what, was, most)
	}
}

// letGo has all handlers end.
func (p *partners) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
	for _, gate := range p.gates {
		close(gate)
	}
	close(p.free)
}

// finish has all tasks end, and checks that each ran once.
func (p *partners) finish() {
	p.t.Helper()
	p.letGo()
	for _, id := range p.ids {
		want(p.t, p.ended(id), "completed", "submitted started completed")
	}
}

func (p *partners) putLimit(l yard.Limit) {
	p.t.Helper()
	testkit.NoError(p.t, testkit.Err(p.client.PutLimit(p.soon(), l)))
}

func (p *partners) putGroup(g yard.Group) {
	p.t.Helper()
	testkit.NoError(p.t, testkit.Err(p.client.PutGroup(p.soon(), g)))
}

// TestI8_EachPartnerHasItsLimit: three per partner, fifteen of all partners together, and thirty of the domain, of two types in two tasklists.
// A partner that is full holds up no other; what holds it up is seen; and a partner has a number of its own within a moment.
func TestI8_EachPartnerHasItsLimit(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		p := newPartners(w, "pay", "report")
		p.putLimit(yard.Limit{Name: "partners", MaxConcurrency: 15, MaxConcurrencyPerGroup: 3})
		for _, typ := range []string{"pay", "report"} {
			p.putType(yard.TaskType{Name: typ, Limits: []string{"partners"}})
		}
		testkit.NoError(t, testkit.Err(p.admin.PutDomain(p.soon(), yard.Domain{Name: p.world.domain, MaxConcurrency: 30})))
		for range 2 {
			w.work(list, p.register, yard.WithTasklists(otherList), yard.WithConcurrency(40))
		}

		p.submit("acme", 40)
		acme, gate := p.group("acme")
		p.runs("acme", acme, exactly(3))
		full := p.use("shared/partners/group/acme", func(l yard.LimitUse) bool {
			return l.SlotsInUse == 3 && l.Running == 3 && l.FullFor > 0 && l.WaitingTasks >= 37 &&
				len(l.Holders) == 3 && len(l.Waiters) > 0
		})
		if full.MaxConcurrency != 3 || full.WaitingTasklists < 1 {
			t.Errorf("%+v", full)
		}
		for range 10 { // for each that ends another one comes
			gate <- struct{}{}
		}
		p.runs("acme", acme, exactly(3))
		p.atMost("acme", acme, 3)
		for i := range 20 { // others go on, up to what all have together
			p.submit(fmt.Sprint("p", i), 4)
		}
		p.runs("all partners", &p.pay, exactly(15))
		tasks := make([]*yardv1.NewTask, 40)
		for i := range tasks {
			tasks[i] = &yardv1.NewTask{Type: "free", Group: "acme"} // nothing counts these per group
		}
		p.ids = append(p.ids, w.submit(tasks...)...)
		p.runs("the domain", &p.domain, exactly(30))
		p.finish()
		for name, m := range p.groups {
			p.atMost(name, m, 3)
		}
		p.atMost("all partners", &p.pay, 15)
		p.atMost("the domain", &p.domain, 30)
		p.use("shared/partners", func(l yard.LimitUse) bool { return l.SlotsInUse == 0 && l.WaitingTasklists == 0 })
	})
}

// TestALimitPerGroupHoldsForWhatWaits: one that comes counts what runs and what waits; a group may have a number of its own, which counts
// at once; and where it goes, all run.
func TestALimitPerGroupHoldsForWhatWaits(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		p := newPartners(w, "pay")
		for _, group := range []string{"acme", "zeta"} {
			p.submit(group, 30)
		}
		p.reach(p.ids[59], "ready")
		stop := w.work(list, p.register, yard.WithTasklists(otherList), yard.WithConcurrency(10))
		p.runs("all", &p.pay, exactly(10))
		p.putType(yard.TaskType{Name: "pay", MaxConcurrencyPerGroup: 2})
		for range 2 {
			w.work(list, p.register, yard.WithTasklists(otherList), yard.WithConcurrency(40))
		}
		acme, gate := p.group("acme")
		zeta, other := p.group("zeta")
		// What ran before ends; then two of each group run.
		p.eventually(func() error {
			for m, gate := range map[*meter]chan struct{}{acme: gate, zeta: other} {
				if now, _ := m.read(); now > 2 {
					select {
					case gate <- struct{}{}:
					case <-p.soon().Done():
					}
					return fmt.Errorf("%d run", now)
				}
			}
			return nil
		})
		p.runs("acme", acme, exactly(2))
		p.runs("zeta", zeta, exactly(2))
		acme.restart()
		for range 4 {
			gate <- struct{}{}
		}
		p.runs("acme", acme, exactly(2))
		p.atMost("acme", acme, 2)

		p.putGroup(yard.Group{Name: "acme", MaxConcurrency: 3})
		p.runs("acme", acme, exactly(3))
		p.runs("zeta", zeta, exactly(2))
		p.atMost("acme", acme, 3)
		if g, err := w.client.GetGroup(w.soon(), "acme"); err != nil || g.MaxConcurrency != 3 || g.Weight != 1 {
			t.Errorf("%+v %v", g, err)
		}
		testkit.NoError(t, testkit.Err(w.client.DeleteGroup(w.soon(), "acme", 0)))
		gate <- struct{}{} // those of acme that may run are fewer again
		p.runs("acme", acme, exactly(2))

		p.putType(yard.TaskType{Name: "pay"})
		stop()
		p.runs("all", &p.pay, func(now int) bool { return now >= 20 })
		p.letGo()
		for _, id := range p.ids {
			equal(t, "state", p.ended(id).State, yardv1.TaskState_TASK_STATE_COMPLETED)
		}
	})
}

// TestALimitPerGroupIsANumber: what is none is refused, and says where.
func TestALimitPerGroupIsANumber(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for path, put := range map[string]func() error{
			"/type/max_concurrency_per_group": func() error {
				_, err := w.client.PutType(w.soon(), yard.TaskType{Name: "x", MaxConcurrencyPerGroup: -1})
				return err
			},
			"/limit/max_concurrency_per_group": func() error {
				_, err := w.client.PutLimit(w.soon(), yard.Limit{Name: "x", MaxConcurrency: 1, MaxConcurrencyPerGroup: 1_000_001})
				return err
			},
			"/limit": func() error {
				_, err := w.client.PutLimit(w.soon(), yard.Limit{Name: "x"})
				return err
			},
			"/tasklist/max_concurrency_per_group": func() error {
				_, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, MaxConcurrencyPerGroup: -1})
				return err
			},
			"/group/max_concurrency": func() error {
				_, err := w.client.PutGroup(w.soon(), yard.Group{Name: "acme", Weight: 1, MaxConcurrency: -2})
				return err
			},
		} {
			err := put()
			refusedAt(t, err, fault.InvalidArgument, path)
		}
	})
}
