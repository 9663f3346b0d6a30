package scenario_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// meter counts the handlers that one limit covers.
type meter struct {
	mu        sync.Mutex
	now, most int
}

func (m *meter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now += n
	m.most = max(m.most, m.now)
}

func (m *meter) read() (now, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now, m.most
}

// restart forgets the most there was.
func (m *meter) restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = m.now
}

// hold has a handler run until its gate opens, and counts it meanwhile.
func hold(ctx context.Context, gate <-chan struct{}, all ...*meter) error {
	for _, m := range all {
		m.add(1)
	}
	defer func() {
		for _, m := range all {
			m.add(-1)
		}
	}()
	select {
	case <-gate:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// runs waits until as many run as wanted.
func (w *world) runs(what string, m *meter, wanted func(now int) bool) {
	w.t.Helper()
	w.eventually(func() error {
		if now, _ := m.read(); !wanted(now) {
			return fmt.Errorf("of %s %d run", what, now)
		}
		return nil
	})
}

// exactly is what runs wants for a number.
func exactly(n int) func(now int) bool { return func(now int) bool { return now == n } }

// levels are handlers of three types in two tasklists, and how many run under each limit.
type levels struct {
	*world
	domain, tasklist, pay, shared meter
	// of those that share a limit, and of the free ones, each waits for its gate.
	sharing, free chan struct{}
	ids           []string
}

// otherList is the second tasklist: it has no limit.
const otherList = "other"

// register has a worker count.
func (l *levels) register(worker *yard.Worker) {
	for _, typ := range []string{"pay", "report", "free"} {
		meters, gate := []*meter{&l.domain, &l.shared}, l.sharing
		switch typ {
		case "pay":
			meters = append(meters, &l.pay)
		case "free":
			meters, gate = meters[:1], l.free
		}
		yard.Handle(worker, typ, func(ctx context.Context, _ struct{}) (struct{}, error) {
			all := meters
			if yard.Info(ctx).Tasklist == list {
				all = append(all[:len(all):len(all)], &l.tasklist)
			}
			return struct{}{}, hold(ctx, gate, all...)
		})
	}
}

// inUse waits until a tasklist's limits are as full as that, such as "3 of 4", and there is no other.
func (l *levels) inUse(want map[string]string) {
	l.t.Helper()
	l.eventually(func() error {
		got := map[string]string{}
		for _, s := range must[yardv1.DescribeTasklistResponse](l.world, "tasklists.describe", &yardv1.DescribeTasklistRequest{Tasklist: list}).Slots {
			got[s.Ref] = fmt.Sprintf("%d of %d", s.InUse, s.Limit)
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("slots %v, want %v", got, want)
		}
		return nil
	})
}

func (l *levels) putShared(most int) {
	l.t.Helper()
	testkit.NoError(l.t, testkit.Err(l.client.PutLimit(l.soon(), yard.Limit{Name: "acme", MaxConcurrency: most})))
}

// put sets the limits: six in the domain, five in one of its tasklists, four of two types together, and three of one of these.
func (l *levels) put() {
	l.t.Helper()
	testkit.NoError(l.t, testkit.Err(l.admin.PutDomain(l.soon(), yard.Domain{Name: l.world.domain, MaxConcurrency: 6})))
	testkit.NoError(l.t, testkit.Err(l.client.PutTasklist(l.soon(), yard.Tasklist{Name: list, MaxConcurrency: 5})))
	l.putShared(4)
	l.putType(yard.TaskType{Name: "pay", MaxConcurrency: 3, Limits: []string{"acme"}})
	l.putType(yard.TaskType{Name: "report", Limits: []string{"acme"}})
	_, err := l.client.DeleteLimit(l.soon(), "acme", 0)
	refused(l.t, err, fault.FailedPrecondition)
}

// submit hands in n tasks.
func (l *levels) submit(typ, tasklist string, n int) {
	l.t.Helper()
	tasks := many(n, &yardv1.NewTask{Type: typ, Tasklist: tasklist})
	l.ids = append(l.ids, l.world.submit(tasks...)...)
}

// fill starts as many as the limits allow, one limit after the other. The first slots that are counted show that matching
// knows them all.
func (l *levels) fill() {
	l.t.Helper()
	for _, step := range []struct {
		typ, tasklist             string
		n                         int
		domain, own, shared, paid string
	}{
		{"pay", list, 1, "1 of 6", "1 of 5", "1 of 4", "1 of 3"},
		{"pay", list, 9, "3 of 6", "3 of 5", "3 of 4", "3 of 3"},
		{"report", otherList, 10, "4 of 6", "3 of 5", "4 of 4", "3 of 3"},
		{"free", list, 2, "6 of 6", "5 of 5", "4 of 4", "3 of 3"}, // more would take the slots that others leave
	} {
		l.submit(step.typ, step.tasklist, step.n)
		l.inUse(map[string]string{"domain": step.domain, "tasklist/" + list: step.own, "shared/acme": step.shared, "type/pay": step.paid})
	}
	l.runs("the domain", &l.domain, exactly(6))
}

// fewer waits until the limit that types share is down to two: for each task that ends another one comes, and never do
// more run, 20 times in a row.
func (l *levels) fewer() {
	l.t.Helper()
	next := 0
	l.eventually(func() error {
		l.shared.restart()
		for range 20 {
			l.submit([]string{"pay", "report"}[next%2], []string{list, list, otherList, otherList}[next%4], 1)
			next++
			l.sharing <- struct{}{}
			l.runs("acme", &l.shared, func(now int) bool { return now >= 2 })
		}
		if _, most := l.shared.read(); most > 2 {
			return fmt.Errorf("%d ran under the limit of acme", most)
		}
		return nil
	})
}

// TestI8LimitsOfAllLevelsHold: each limit is reached, and none exceeded. The shared one is then lowered under what runs.
func TestI8LimitsOfAllLevelsHold(t *testing.T) {
	testkit.Slow(t, "runs many tasks one after the other")
	everywhere(t, func(t *testing.T, w *world) {
		l := &levels{world: w, sharing: make(chan struct{}), free: make(chan struct{})}
		l.put()
		for range 2 {
			w.work(list, l.register, yard.WithTasklists(otherList), yard.WithConcurrency(10))
		}
		l.fill()

		l.putShared(2)
		l.inUse(map[string]string{"domain": "6 of 6", "tasklist/" + list: "5 of 5", "shared/acme": "4 of 2", "type/pay": "3 of 3"})
		l.fewer()

		for len(l.ids) < 200 {
			for _, typ := range []string{"pay", "report", "free"} {
				l.submit(typ, list, 5)
				l.submit(typ, otherList, 5)
			}
		}
		close(l.sharing)
		close(l.free)
		for _, id := range l.ids {
			want(t, w.ended(id), "completed", "submitted started completed")
		}
		for what, c := range map[string]struct {
			m     *meter
			limit int
		}{"the domain": {&l.domain, 6}, "the tasklist": {&l.tasklist, 5}, "pay": {&l.pay, 3}, "acme": {&l.shared, 4}} {
			if now, most := c.m.read(); now != 0 || most > c.limit {
				t.Errorf("the limit of %s is %d: %d ran at once, and %d do", what, c.limit, most, now)
			}
		}
		l.inUse(map[string]string{})
		w.putType(yard.TaskType{Name: "pay"})
		w.putType(yard.TaskType{Name: "report"})
		testkit.Check(t, testkit.Err(w.client.DeleteLimit(w.soon(), "acme", 0)))
	})
}
