package attack_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// submits sends a request of a domain once, as it is.
func submits(nc *nats.Conn, domain string, req *yardv1.SubmitRequest) (answered []string, err error) {
	body, err := codec.Marshal(codec.JSON, req)
	if err != nil {
		return nil, err
	}
	m, err := nc.Request(topology.API(domain, "tasks.submit"), body, within)
	if err != nil {
		return nil, err
	}
	if e := fault.Decode(m.Header.Get(fault.HeaderCode), m.Header.Get(fault.HeaderDescription), m.Data); e != nil {
		return nil, e
	}
	var resp yardv1.SubmitResponse
	err = codec.Unmarshal(codec.JSON, m.Data, &resp)
	return resp.TaskIDs(), err
}

// careless is a client that submits whatever it likes and comes again at once: with keys of each kind or none, and each request twice. It returns the ids that
// it was given.
func careless(t *testing.T, nc *nats.Conn, n int) (accepted []string) {
	for k := range 20 {
		req := &yardv1.SubmitRequest{Tasklist: "mail", RequestId: ids.NewRequestID(time.Now()).String()}
		for i := range 40 {
			task := &yardv1.NewTask{Type: "email"}
			switch k % 4 {
			case 1:
				task.UniqueKey = fmt.Sprint(n, "-", k, "-", i)
			case 2:
				task.OrderKey = fmt.Sprint(i)
			case 3:
				task.DelayMs = 3_600_000
			}
			req.Tasks = append(req.Tasks, task)
		}
		first, err := submits(nc, attacker, req)
		again, second := submits(nc, attacker, req)
		for fault.CodeOf(second) == fault.Unknown {
			again, second = submits(nc, attacker, req)
		}
		for _, err := range []error{err, second} {
			e := fault.From(err)
			if err != nil && e.Code != fault.Unknown && (e.Code != fault.ResourceExhausted || e.Detail[fault.DetailReason] != "quota" || e.RetryAfter <= 0) {
				t.Errorf("request %d of client %d: %v", k, n, err)
			}
		}
		if err == nil && (second != nil || !slices.Equal(first, again)) {
			t.Errorf("request %d of client %d: a repeat of %v was answered %v, %v", k, n, first, again, second)
		}
		accepted = append(accepted, again...)
	}
	return accepted
}

// TestI14_ACarelessClientStopsAtItsQuota of waiting tasks: each task that it got an id of is there, once, and no others; another domain goes on.
func TestI14_ACarelessClientStopsAtItsQuota(t *testing.T) {
	testkit.Slow(t, "floods the system")
	const most, clients, size = 500, 4, 40
	s := sealedStack(t)
	admin, err := yard.NewAdmin(connect(t, s, sealed.Operator()))
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(admin.PutDomain(t.Context(), yard.Domain{Name: attacker, Quota: yard.Quota{WaitingTasks: most}})))
	waiting := func() int64 {
		d, err := admin.GetDomain(t.Context(), attacker)
		testkit.NoError(t, err)
		if d.Use == nil {
			return -1
		}
		return d.Use.WaitingTasks
	}
	become := func(want int) {
		t.Helper()
		testkit.Eventually(t, within, func() error {
			if n := waiting(); n != int64(want) {
				return fmt.Errorf("%d tasks wait, want %d", n, want)
			}
			return nil
		})
	}
	become(0)
	var mu sync.Mutex
	var accepted []string
	var all sync.WaitGroup
	for n := range clients {
		nc := connect(t, s, sealed.Admin(attacker))
		all.Go(func() {
			own := careless(t, nc, n)
			mu.Lock()
			defer mu.Unlock()
			accepted = append(accepted, own...)
		})
	}
	other := connect(t, s, sealed.Admin(victim))
	testkit.NoError(t, testkit.Err(submits(other, victim, &yardv1.SubmitRequest{Tasklist: "mail", Tasks: []*yardv1.NewTask{{Type: "email"}}})))
	all.Wait()
	if unique := slices.Compact(slices.Sorted(slices.Values(accepted))); len(unique) != len(accepted) {
		t.Errorf("%d tasks have %d ids", len(accepted), len(unique))
	}
	if n := len(accepted); n < most/2 || n > most+clients*size {
		t.Errorf("%d tasks were accepted, the quota is %d", n, most)
	}
	become(len(accepted))
}
