package timer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

func TestMain(m *testing.M) { natskit.VerifyTestMain(m) }

const soon = 60 * time.Second

// start provisions a cluster of two partitions and runs the service on it.
func start(t *testing.T) (*nats.Conn, *telemetry.Metrics) {
	t.Helper()
	_, nc, metrics := startService(t)
	return nc, metrics
}

func startService(t *testing.T) (*timer.Service, *nats.Conn, *telemetry.Metrics) {
	t.Helper()
	nc := natskit.Run(t).Connect(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	n := topology.Partitioning{History: 2, Matching: 1}
	testkit.NoError(t, provision.Apply(t.Context(), js, n, provision.Options{}))
	metrics := signalkit.Metrics(t)
	env := process.Env{NATS: nc, Partitioning: n, Node: "one", Log: slog.New(slog.DiscardHandler), Metrics: metrics}
	s, err := timer.New(timer.Deps{Env: env, Config: timer.DefaultConfig()})
	testkit.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		testkit.Check(t, <-ended)
	})
	select {
	case <-s.Ready():
	case <-time.After(soon):
		t.Fatal("not ready")
	}
	return s, nc, metrics
}

func park(t *testing.T, nc *nats.Conn, p int, all ...*logv1.Record) {
	t.Helper()
	data := testkit.Encoded(t, &logv1.Batch{Tasks: all})
	subject := topology.Timer(p, topology.TimerBucket(all[0].DueAtMs))
	if _, _, err := natslog.Append(t.Context(), nc, natslog.Msg{Subject: subject, Data: data}); err != nil {
		t.Fatal(err)
	}
}

func task(p, n int, tasklist string, failures int32) *logv1.Record {
	id := ids.NewTaskID(time.UnixMilli(int64(n)), p, uint64(n))
	return &logv1.Record{
		Id: id[:], Domain: "shop", Tasklist: tasklist, Type: "t", Priority: 3, Payload: []byte("1"), Failures: failures,
		Parkings: 1, DueAtMs: time.Now().Add(3 * time.Minute).UnixMilli(), Steps: []*logv1.Step{{Kind: 1, AtMs: 1}},
	}
}

// call calls until somebody serves the partition.
func call[Resp any, P interface {
	*Resp
	natsrpc.Message
}](t *testing.T, nc *nats.Conn, p int, verb string, req natsrpc.Message) P {
	t.Helper()
	var got P
	testkit.Eventually(t, soon, func() error {
		var err error
		got, err = natsrpc.Call[Resp, P](t.Context(), nc, topology.TimerCall(p, verb), req)
		if err != nil && fault.CodeOf(err) != fault.Unavailable {
			t.Fatal(err)
		}
		return err
	})
	return got
}

func TestTheServiceAnswersItsCalls(t *testing.T) {
	nc, metrics := start(t)
	all := []*logv1.Record{task(1, 1, "mail", 0), task(1, 2, "mail", 2), task(1, 3, "sms", 0)}
	park(t, nc, 1, all...)
	describe := func(tasklist string) int64 {
		return call[rpcv1.DescribeWaitingResponse](t, nc, 1, "describe", &rpcv1.DescribeWaitingRequest{Domain: "shop", Tasklist: tasklist}).Waiting
	}
	testkit.Eventually(t, soon, func() error {
		if n := describe(""); n != 3 {
			return fmt.Errorf("%d wait", n)
		}
		return nil
	})
	testkit.Equal(t, "wait in mail", describe("mail"), 2)

	checkList(t, nc)
	checkAhead(t, nc, all[0].DueAtMs/60_000)
	get := func(domain string) *yardv1.Task {
		return call[rpcv1.GetTaskResponse](t, nc, 1, "get", &rpcv1.GetTaskRequest{TaskId: all[1].Id, Domain: domain}).Task
	}
	if got := get("shop"); got == nil || got.State != yardv1.TaskState_TASK_STATE_BACKOFF || len(got.Events) != 1 || string(got.Payload.Data) != "1" {
		t.Errorf("get: %v", got)
	}
	if got := get("other"); got != nil {
		t.Errorf("another domain's task: %v", got)
	}
	located := call[rpcv1.LocateTaskResponse](t, nc, 1, "locate", &rpcv1.LocateTaskRequest{TaskId: all[1].Id, Domain: "shop"})
	if located.Waiting == nil || string(located.Waiting.Id) != string(all[1].Id) || located.FiredSeq > 0 {
		t.Errorf("locate: %v", located)
	}
	checkFire(t, nc, all[1].Id)
	testkit.Equal(t, "wait in mail", describe("mail"), 1)
	if got := get("shop"); got != nil {
		t.Errorf("a fired task: %v", got)
	}
	_, err := natsrpc.Call[rpcv1.GetTaskResponse](t.Context(), nc, topology.TimerCall(1, "get"), &rpcv1.GetTaskRequest{TaskId: []byte("x")})
	testkit.Code(t, "a bad id", err, fault.InvalidArgument)
	testkit.Eventually(t, soon, func() error {
		waiting, early := metrics.Gauge(signals.TimersWaiting, "1").Value(), metrics.Counter(signals.TimersEarly, "1").Value()
		if waiting != 2 || early != 1 {
			return fmt.Errorf("%d wait, %d were fired early", waiting, early)
		}
		return nil
	})
	values, err := metrics.Values()
	testkit.NoError(t, err)
	next, known := values[`yardmaster_timer_next_seconds{partition="1"}`]
	if _, other := values[`yardmaster_timer_next_seconds{partition="0"}`]; !known || next <= 0 || next > 180 || other {
		t.Errorf("the next task is due in %v s (%v), or one of a partition where none waits", next, known)
	}
}

// checkAhead counts and lists the tasks 1, 2 and 3 by due time.
func checkAhead(t *testing.T, nc *nats.Conn, minute int64) {
	t.Helper()
	for domain, want := range map[string]int{"shop": 3, "other": 0} {
		ahead := call[rpcv1.CountAheadResponse](t, nc, 1, "ahead", &rpcv1.CountAheadRequest{Domain: domain, UntilMinute: minute + 2, SpanMinutes: 1, SpansMax: 10})
		n, kinds := 0, 0
		for _, s := range ahead.Spans {
			n += int(s.Tasks)
		}
		for _, k := range ahead.Counts {
			kinds += int(k.Tasks)
		}
		testkit.Equal(t, "counted, by kind and in all, of "+domain, [3]int{n, kinds, int(ahead.Waiting)}, [3]int{want, want, want})
		req := &rpcv1.ListTasksRequest{Domain: domain, Filter: &yardv1.ListRequest{Limit: 2}, DueUntilMinute: minute + 2}
		first := call[rpcv1.ListTasksResponse](t, nc, 1, "list", req)
		testkit.Equal(t, "listed of "+domain, len(first.Tasks), min(want, 2))
		if want == 0 {
			continue
		}
		req.DueFrom = first.DueNext
		rest := call[rpcv1.ListTasksResponse](t, nc, 1, "list", req)
		testkit.Equal(t, "listed then", len(rest.Tasks), 1)
		if rest.DueNext != nil || rest.Tasks[0].Payload != nil {
			t.Errorf("the last page is %v", rest)
		}
	}
}

// checkFire has a task fire that waits.
func checkFire(t *testing.T, nc *nats.Conn, id []byte) {
	t.Helper()
	refused := func(what string, req *rpcv1.FireEarlyRequest) {
		t.Helper()
		testkit.Code(t, what, testkit.Err(natsrpc.Call[rpcv1.FireEarlyResponse](t.Context(), nc, topology.TimerCall(1, "fire"), req)), fault.InvalidArgument)
	}
	refused("two domains for one task", &rpcv1.FireEarlyRequest{TaskIds: [][]byte{id}, Domains: []string{"shop", "shop"}})
	refused("too many tasks", &rpcv1.FireEarlyRequest{TaskIds: slices.Repeat([][]byte{id}, 10_001)})
	other := &rpcv1.FireEarlyRequest{TaskIds: [][]byte{id}, Domains: []string{"other"}}
	if got := call[rpcv1.FireEarlyResponse](t, nc, 1, "fire", other); len(got.Coming)+len(got.Fired) != 0 {
		t.Errorf("another domain's task (R2): %v", got)
	}
	req := &rpcv1.FireEarlyRequest{TaskIds: slices.Repeat([][]byte{id}, 10_000)}
	if got := call[rpcv1.FireEarlyResponse](t, nc, 1, "fire", req); len(got.Coming) != 1 || string(got.Coming[0]) != string(id) {
		t.Errorf("fire: %v", got)
	}
	testkit.Eventually(t, soon, func() error {
		if got := call[rpcv1.FireEarlyResponse](t, nc, 1, "fire", req); len(got.FiredSeqs) != 1 || string(got.Fired[0]) != string(id) || got.FiredSeqs[0] == 0 {
			return fmt.Errorf("fire, again: %v", got)
		}
		return nil
	})
}

// checkList lists the tasks 1, 2 (a retry) and 3 (of another tasklist) by every filter.
func checkList(t *testing.T, nc *nats.Conn) {
	t.Helper()
	list := func(f *yardv1.ListRequest) (numbers []int64) {
		for _, task := range call[rpcv1.ListTasksResponse](t, nc, 1, "list", &rpcv1.ListTasksRequest{Domain: "shop", Filter: f}).Tasks {
			numbers = append(numbers, task.CreatedAtMs)
			if task.Payload != nil || task.Events != nil {
				t.Error("a list with payloads or events")
			}
		}
		return numbers
	}
	for _, c := range []struct {
		filter *yardv1.ListRequest
		want   []int64
	}{
		{nil, []int64{3, 2, 1}},
		{&yardv1.ListRequest{Limit: 2}, []int64{3, 2}},
		{&yardv1.ListRequest{Tasklist: "mail"}, []int64{2, 1}},
		{&yardv1.ListRequest{Type: "other"}, nil},
		{&yardv1.ListRequest{States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_BACKOFF}}, []int64{2}},
		{&yardv1.ListRequest{States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_WAITING}}, []int64{3, 1}},
		{&yardv1.ListRequest{States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY}}, nil},
	} {
		if got := list(c.filter); !slices.Equal(got, c.want) {
			t.Errorf("list %v: %v, want %v", c.filter, got, c.want)
		}
	}
}

// TestI13ARecordOfANewerVersionStopsItsPartition, with an alarm; the other partition
// goes on. A newer version of the cluster stops both. R21.
func TestI13ARecordOfANewerVersionStopsItsPartition(t *testing.T) {
	s, nc, metrics := startService(t)
	data := testkit.Encoded(t, &logv1.Batch{LogVersion: logversion.Newest() + 1})
	if _, _, err := natslog.Append(t.Context(), nc, natslog.Msg{Subject: topology.Timer(1, 7), Data: data}); err != nil {
		t.Fatal(err)
	}
	stopped := metrics.Gauge(signals.PartitionStopped, "timer", "1")
	testkit.Eventually(t, soon, func() error {
		if stopped.Value() != 1 {
			return errors.New("no alarm")
		}
		return nil
	})
	describe := func(p int) error {
		_, err := natsrpc.Call[rpcv1.DescribeWaitingResponse](t.Context(), nc, topology.TimerCall(p, "describe"), &rpcv1.DescribeWaitingRequest{})
		return err
	}
	testkit.Code(t, "the stopped partition answers", describe(1), fault.Unavailable)
	testkit.Eventually(t, soon, func() error { return describe(0) }) // it may still be loading
	testkit.Check(t, s.Check())

	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), topology.ConfigBucket)
	testkit.NoError(t, err)
	v, err := catalog.GetVersion(t.Context(), kv)
	testkit.NoError(t, err)
	testkit.NoError(t, catalog.RaiseVersion(t.Context(), kv, v, logversion.Newest()+1))
	testkit.Eventually(t, soon, func() error {
		if err := describe(0); fault.CodeOf(err) != fault.Unavailable || s.Check() == nil {
			return fmt.Errorf("it still serves: %v", err)
		}
		return nil
	})
}

func TestConfigDefaultsAreValidAndZeroIsNot(t *testing.T) {
	if got := timer.DefaultConfig().Validate(); got != nil {
		t.Errorf("defaults: %v", got)
	}
	if got := (timer.Config{}).Validate(); len(got) == 0 {
		t.Error("an empty config is valid")
	}
}

// TestTheServiceReportsWhatWaits of domains with a quota, while there is one.
func TestTheServiceReportsWhatWaits(t *testing.T) {
	nc, _ := start(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	kv, err := provision.Bucket(t.Context(), js, topology.ConfigBucket, nil)
	testkit.NoError(t, err)
	reports, err := nc.SubscribeSync(topology.HintStored)
	testkit.NoError(t, err)
	all := []*logv1.Record{task(1, 1, "mail", 0), task(1, 2, "sms", 0), task(1, 3, "sms", 0)}
	all[2].Domain = "free"
	park(t, nc, 1, all...)
	put := func(quota *yardv1.Quota) {
		testkit.NoError(t, testkit.Err(catalog.Domains.Put(t.Context(), kv, "", &yardv1.Domain{Name: "shop", Quota: quota})))
	}
	reported := func(want string) {
		t.Helper()
		testkit.Eventually(t, soon, func() error {
			m, err := reports.NextMsg(soon)
			if err != nil {
				return err
			}
			var got rpcv1.StoredTasks
			if err := got.UnmarshalVT(m.Data); err != nil || !got.Timer {
				t.Fatalf("%v, %v", &got, err)
			}
			if text := fmt.Sprint(got.Partition, got.Domains); text != want {
				return fmt.Errorf("the report is %s, want %s", text, want)
			}
			return nil
		})
	}
	put(&yardv1.Quota{WaitingTasks: 5})
	bytes := all[0].SizeVT() + all[1].SizeVT()
	reported(fmt.Sprint(int32(1), []*rpcv1.DomainStored{{Domain: "shop", Tasks: 2, Bytes: int64(bytes)}}))
	reported(fmt.Sprint(int32(0), []*rpcv1.DomainStored(nil)))
	checkFire(t, nc, all[1].Id)
	reported(fmt.Sprint(int32(1), []*rpcv1.DomainStored{{Domain: "shop", Tasks: 1, Bytes: int64(all[0].SizeVT())}}))
	put(nil)
	testkit.Eventually(t, soon, func() error {
		if m, err := reports.NextMsg(3 * time.Second); err == nil {
			return fmt.Errorf("a report without a quota: %q", m.Data)
		}
		return nil
	})
}
