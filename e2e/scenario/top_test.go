package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// use waits until a limit is used as f wants it.
func (w *world) use(ref string, f func(l yard.LimitUse) bool) (found yard.LimitUse) {
	w.t.Helper()
	w.eventually(func() error {
		top, err := w.client.TopLimits(w.soon(), yard.TopOptions{})
		if err != nil || len(top.SilentShards) > 0 {
			return fmt.Errorf("%v %w", top.SilentShards, err)
		}
		at := slices.IndexFunc(top.Limits, func(l yard.LimitUse) bool { return l.Ref == ref })
		if at < 0 || !f(top.Limits[at]) {
			return fmt.Errorf("the limits are used as %+v", top.Limits)
		}
		found = top.Limits[at]
		return nil
	})
	return found
}

// TestAFullLimitSaysWhoHoldsIt: the attempts that have its slots, with their worker, and the tasklist whose tasks wait, until
// slots are free; and the worker is known with its version.
func TestAFullLimitSaysWhoHoldsIt(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "pay", MaxConcurrency: 2})
		gate := make(chan struct{})
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "pay", func(ctx context.Context, _ struct{}) (struct{}, error) {
				return struct{}{}, hold(ctx, gate)
			})
		}, yard.WithIdentity("payer"), yard.WithVersion("v1.4.2"))
		var all []string
		for range 5 {
			all = append(all, w.submitOne(&yardv1.NewTask{Type: "pay"}))
		}
		l := w.use("type/pay", func(l yard.LimitUse) bool {
			return l.Running == 2 && l.SlotsInUse == 2 && l.FullFor > 0 && l.WaitingTasks >= 3 && len(l.Holders) == 2 && l.Holders[1].State == yard.StateRunning && l.Holders[0].State == yard.StateRunning
		})
		for _, h := range l.Holders {
			if !slices.Contains(all, h.TaskID) || h.Type != "pay" || h.Tasklist != list || h.Worker != "payer" {
				t.Errorf("it is held by %+v", h)
			}
		}
		if len(l.Waiters) != 1 || l.Waiters[0].Tasklist != list || l.Waiters[0].Tasks < 3 || l.MaxConcurrency != 2 || l.UnexplainedSlots != 0 || l.Observed < l.FullFor {
			t.Errorf("%+v", l)
		}
		w.eventually(func() error {
			p, err := w.client.TasklistPollers(w.soon(), list)
			if err != nil || len(p.All) != 1 || p.KnownFor <= 0 {
				return fmt.Errorf("%+v %w", p, err)
			}
			if one := p.All[0]; one.Worker != "payer" || one.Version != "v1.4.2" || !slices.Equal(one.Types, []string{"pay"}) || one.TypesCount != 1 || one.WaitingPolls == 0 {
				return fmt.Errorf("the poller is %+v", one)
			}
			return nil
		})
		if d, err := w.client.DescribeTasklist(w.soon(), list); err != nil || d.Pollers != 1 {
			t.Errorf("%+v %v", d, err)
		}
		close(gate)
		for _, id := range all {
			want(t, w.ended(id), "completed", "submitted started completed")
		}
		w.use("type/pay", func(l yard.LimitUse) bool {
			return l.Running == 0 && l.SlotsInUse == 0 && l.FullFor == 0 && l.WaitingTasklists == 0 && len(l.Holders)+len(l.Waiters)+len(l.Shards) == 0
		})
		_, err := w.client.TasklistPollers(w.soon(), "no such name")
		refused(t, err, fault.InvalidArgument)
	})
}

// TestTheBusiestDomainsAreKnown: what a domain has and does, what waits in the timer store, and the limit for which its tasks wait. All owners answer.
func TestTheBusiestDomainsAreKnown(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "pay", MaxConcurrency: 1})
		gate := make(chan struct{})
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "pay", func(ctx context.Context, _ struct{}) (struct{}, error) {
				return struct{}{}, hold(ctx, gate)
			})
		})
		all := []string{w.submitOne(&yardv1.NewTask{Type: "pay"}), w.submitOne(&yardv1.NewTask{Type: "pay"})}
		w.submitOne(&yardv1.NewTask{Type: "pay", DelayMs: 3_600_000})
		shown := func(f func(d *yardv1.TopDomain, full []*yardv1.FullLimit) bool) {
			w.eventually(func() error {
				top, err := w.admin.TopDomains(w.soon(), &yardv1.TopDomainsRequest{Limit: 100})
				if err != nil {
					return err
				}
				at := slices.IndexFunc(top.Domains, func(d *yardv1.TopDomain) bool { return d.Domain == w.domain })
				full := slices.DeleteFunc(top.FullLimits, func(l *yardv1.FullLimit) bool { return l.Domain != w.domain })
				if at < 0 || len(top.SilentHistory)+len(top.SilentTimers)+len(top.SilentShards) > 0 || !f(top.Domains[at], full) {
					return fmt.Errorf("shown is %v", top)
				}
				return nil
			})
		}
		shown(func(d *yardv1.TopDomain, full []*yardv1.FullLimit) bool {
			return d.Running == 1 && d.Ready == 1 && d.Waiting == 1 && d.OldestReadyMs > 0 && d.Share > 0 && d.LateMs == 0 &&
				len(full) == 1 && full[0].Ref == "type/pay" && full[0].MaxConcurrency == 1 && full[0].Running == 1 && full[0].FullForMs > 0 && full[0].WaitingTasklists > 0
		})
		close(gate)
		all = append(all, w.submitOne(&yardv1.NewTask{Type: "pay"}))
		for _, id := range all {
			want(t, w.ended(id), "completed", "submitted started completed")
		}
		shown(func(d *yardv1.TopDomain, full []*yardv1.FullLimit) bool {
			return d.CompletedPerS > 0 && d.StartedPerS > 0 && d.AdmittedPerS > 0 && d.Received > 0 && d.Ready+d.Running == 0 && len(full) == 0
		})
	})
}
