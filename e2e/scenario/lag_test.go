package scenario_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// lagging is a stack with one partition and a window of so many tasks, which purges soon.
func lagging(t *testing.T, window int) stack.Config {
	t.Helper()
	services := stack.DefaultServices()
	services.History.Partition.WindowTasks, services.History.Partition.PurgeEvery, services.History.Partition.SnapshotEvery = window, time.Second, time.Second
	return stack.Config{
		Tables: stack.TablesMemory, DataDir: t.TempDir(), Services: &services, Partitioning: topology.Partitioning{History: 1, Matching: 1},
	}
}

// isSplitOff waits until an operator sees that a domain fills a window of its own, and so many messages wait behind it.
func isSplitOff(w *world, window, unread int64) {
	w.t.Helper()
	w.eventually(func() error {
		resp, err := w.admin.ListQueues(w.soon(), &yardv1.ListQueuesRequest{Domain: w.domain})
		if err != nil {
			return err
		}
		all := resp.Partitions[0].Queues
		if q := all[len(all)-1]; q.Domain != w.domain || q.Lane != "p3" || q.Tasks < window || q.TasksMax != window || q.Unread < unread || q.SplitAtMs == 0 {
			return fmt.Errorf("the queues are %v", all)
		}
		return nil
	})
}

// TestI11_AFloodWithoutAWorkerHoldsUpNobody: a domain has six windows of tasks of one priority, in large requests,
// requests for several tasklists and single ones, and no worker. Another's task of the same priority is run, before
// and after a restart; then the flood gets its worker, and each of its tasks is run once. At last nothing is
// left in the log.
func TestI11_AFloodWithoutAWorkerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "floods the system for half a minute and more")
	const window, batch, batches = 500, 100, 30
	cfg := lagging(t, window)
	s := own(t, cfg)
	flood, shop := enter(t, s), enter(t, s)
	one := &yardv1.NewTask{Type: "x", Payload: jsonPayload(`"` + strings.Repeat("p", 250) + `"`)}
	request := make([]*yardv1.NewTask, batch)
	for i := range request {
		request[i] = one
	}
	var all []string
	for range batches {
		all = append(all, flood.submit(request...)...)
	}
	runs := func(what string) { // many are filed in their lane, a single one with others' in the most urgent lane
		t.Helper()
		for _, n := range []int{1, batch} {
			seen := map[string]bool{}
			ids := shop.submit(request[:n]...)
			drain(shop, seen, n)
			for _, id := range ids {
				equal(t, what, seen[id], true)
			}
		}
	}
	runs("behind a flood")
	isSplitOff(flood, window, batches/2)
	for range batch {
		all = append(all, flood.submitOne(one))
	}
	runs("behind a flood of single tasks")
	flood.meter(signals.SubmitMessagesPassedOver, batches/2)
	want(t, flood.get(all[batch*batches-1]), "queued", "")

	testkit.NoError(t, closeStack(s))
	s = own(t, cfg)
	flood, shop = join(t, s, flood.domain), join(t, s, shop.domain)
	runs("after a restart")
	seen := map[string]bool{}
	drain(flood, seen, len(all))
	for _, id := range all {
		if !seen[id] {
			t.Fatalf("%s never came", id)
		}
	}
	flood.eventually(func() error {
		left := 0
		err := natslog.ReadAll(flood.soon(), flood.inside(), natslog.ReadConfig{Stream: topology.HistoryStream(0)}, func(r natslog.Record) error {
			if topology.IsSubmit(0, r.Subject) {
				left++
			}
			return nil
		})
		if err == nil && left > 0 {
			err = fmt.Errorf("%d submits are left in the log", left)
		}
		return err
	})
}
