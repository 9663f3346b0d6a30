package partition_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
)

// looks are all that look at what is in memory.
func looks(o *partition.Owner, domain string) []func(context.Context) error {
	list := func(next bool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := queries.Of(o).List(ctx, &rpcv1.ListTasksRequest{
				Domain: domain, Next: next, Filter: &yardv1.ListRequest{Limit: 1, States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY}},
			})
			return err
		}
	}
	describe := func(list int32) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := queries.Of(o).Describe(ctx, &rpcv1.DescribePartitionRequest{Domain: domain, List: list})
			return err
		}
	}
	return []func(context.Context) error{list(false), list(true), describe(0), describe(1)}
}

// TestI14_QueriesGoOneAfterTheOther: those of a domain that asks without end wait, and do not hold up what else the owner is asked, nor keep
// others from asking: these take turns with it.
func TestI14_QueriesGoOneAfterTheOther(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		o := s.serves(s.deps("a"))
		id := newID(1)
		s.submit(3, task(id, "shop"))
		synctest.Wait()

		var mu sync.Mutex
		var order []string
		codes := map[fault.Code]int{}
		note := func(who string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if order = append(order, who); err != nil {
				codes[fault.CodeOf(err)]++
			}
		}
		get := func(reply func(*rpcv1.GetTaskResponse, error)) {
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"}, reply)
		}
		// stop stops the loop behind all that it has been handed; go on is what ends that.
		stop := func() (goOn func()) {
			stopped := make(chan struct{})
			get(func(*rpcv1.GetTaskResponse, error) { <-stopped })
			synctest.Wait()
			return func() { close(stopped); synctest.Wait() }
		}
		goOn := stop()
		const each = 20
		for range each {
			for _, q := range looks(o, "flood") {
				go func() { note("flood", q(t.Context())) }()
			}
		}
		synctest.Wait()
		if n := codes[fault.ResourceExhausted]; n != 4*each-49 {
			t.Errorf("%d of %d queries were refused", n, 4*each)
		}
		order = nil
		ended, cancel := context.WithCancel(t.Context())
		for i, q := range looks(o, "shop") {
			ctx := t.Context()
			if i == 0 {
				ctx = ended
			}
			go func() { note("shop", q(ctx)) }()
		}
		get(func(_ *rpcv1.GetTaskResponse, err error) { note("get", err) })
		cancel() // who waits no more is answered
		synctest.Wait()
		for range 4 * each { // one query at a time, so each has noted its answer before the next begins
			next := stop()
			goOn()
			goOn = next
		}
		goOn()
		last := map[string]int{}
		for i, who := range order {
			last[who] = i
		}
		if len(order) != 49+4+1 || order[0] != "shop" || last["get"] > 2 || last["shop"] > 8 || codes[fault.Unavailable] != 1 {
			t.Errorf("%d answers, last of each %v, refused %v", len(order), last, codes)
		}
	})
}
