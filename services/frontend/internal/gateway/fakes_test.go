package gateway

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/intake"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/operate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/poll"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/query"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/settings"
)

// memLog is a log in memory that recognises message ids like JetStream does.
type memLog struct {
	mu         sync.Mutex
	partitions [][]natslog.Msg
	storedAt   [][]time.Time
	tries      []natslog.Msg
	// fault decides what befalls an append: what it returns is returned, after the
	// message was stored if stored is true. Nil means nothing does.
	fault func(p int, m natslog.Msg) (stored bool, err error)
	// atomicFault is that of an atomic batch, which late stores when it is called; l.mu is held then.
	atomicFault func(late func()) (stored bool, err error)
	// gate, if set, is received from before each append.
	gate chan struct{}
	// forgotten: all that is stored was purged, but for the ids.
	forgotten bool
}

func newMemLog(partitions int) *memLog {
	return &memLog{partitions: make([][]natslog.Msg, partitions), storedAt: make([][]time.Time, partitions)}
}

func partitionOf(subject string) int {
	p, err := strconv.Atoi(strings.Split(subject, ".")[2])
	if err != nil {
		panic(err)
	}
	return p
}

func (l *memLog) find(p int, id string) (seq uint64, found bool) {
	for i, m := range l.partitions[p] {
		if id != "" && m.MsgID == id && time.Since(l.storedAt[p][i]) < topology.DedupeWindow {
			return uint64(i + 1), true
		}
	}
	return 0, false
}

func (l *memLog) Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error) {
	if l.gate != nil {
		select {
		case <-l.gate:
		case <-ctx.Done():
			return 0, false, natslog.ErrOutcomeUnknown
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := partitionOf(m.Subject)
	l.tries = append(l.tries, m)
	stored := true
	if l.fault != nil {
		stored, err = l.fault(p, m)
	}
	if at, found := l.find(p, m.MsgID); found {
		return at, true, err
	}
	if stored {
		if refused := l.storeAtomic(p, []natslog.Msg{m}); refused != nil {
			return 0, false, refused
		}
	}
	return uint64(len(l.partitions[p])), false, err
}

func (l *memLog) AppendEach(ctx context.Context, msgs []natslog.Msg, outcome func(i int, a natslog.Appended)) {
	for i, m := range msgs {
		seq, duplicate, err := l.Append(ctx, m)
		outcome(i, natslog.Appended{Seq: seq, Duplicate: duplicate, Err: err})
	}
}

// AppendAtomic stores all messages or none, by what their headers expect.
func (l *memLog) AppendAtomic(ctx context.Context, msgs []natslog.Msg) (lastSeq uint64, err error) {
	if l.gate != nil {
		select {
		case <-l.gate:
		case <-ctx.Done():
			return 0, natslog.ErrOutcomeUnknown
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := partitionOf(msgs[0].Subject)
	l.tries = append(l.tries, msgs...)
	stored := true
	if l.fault != nil {
		stored, err = l.fault(p, msgs[len(msgs)-1])
	}
	if l.atomicFault != nil {
		stored, err = l.atomicFault(func() { _ = l.storeAtomic(p, msgs) })
	}
	if stored {
		if refused := l.storeAtomic(p, msgs); refused != nil {
			return 0, refused
		}
	}
	return uint64(len(l.partitions[p])), err
}

// storeAtomic stores all messages or none; l.mu is held.
func (l *memLog) storeAtomic(p int, msgs []natslog.Msg) error {
	for _, m := range msgs {
		of := m.Subject
		if other := m.Header[jetstream.ExpectedLastSubjSeqSubjHeader]; other != nil {
			of = other[0]
		}
		if want := m.Header[jetstream.ExpectedLastSubjSeqHeader]; want != nil && want[0] != strconv.FormatUint(l.lastFor(p, of), 10) {
			return natslog.ErrWrongLast
		}
	}
	for _, m := range msgs {
		l.store(p, m)
	}
	return nil
}

// lastFor is where the last message of a subject lies; l.mu is held.
func (l *memLog) lastFor(p int, subject string) uint64 {
	for i, m := range slices.Backward(l.partitions[p]) {
		if m.Subject == subject {
			return uint64(i + 1)
		}
	}
	return 0
}

func (l *memLog) LastFor(_ context.Context, p int, subject string) (*natslog.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq := l.lastFor(p, subject)
	if seq == 0 {
		return nil, nil
	}
	return &natslog.Record{Seq: seq, Time: l.storedAt[p][seq-1], Data: l.partitions[p][seq-1].Data}, nil
}

// store stores a message; l.mu is held.
func (l *memLog) store(p int, m natslog.Msg) {
	l.partitions[p] = append(l.partitions[p], m)
	l.storedAt[p] = append(l.storedAt[p], time.Now())
}

func (l *memLog) Message(_ context.Context, p int, seq uint64) (*natslog.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.forgotten {
		return nil, nil
	}
	return &natslog.Record{Seq: seq, Time: l.storedAt[p][seq-1], Data: l.partitions[p][seq-1].Data}, nil
}

func (l *memLog) MessageBytesMax() int { return 1 << 20 }

// tasks are the printed ids in the log, with how often each is there.
func (l *memLog) tasks(t *testing.T) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]int{}
	for _, msgs := range l.partitions {
		for _, m := range submits(msgs) {
			for _, r := range decode(t, m.Data).Tasks {
				found[printed(r.Id)]++
			}
		}
	}
	return found
}

func (l *memLog) messages() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, msgs := range l.partitions {
		n += len(msgs)
	}
	return n
}

// submits are the messages that hold tasks.
func submits(msgs []natslog.Msg) iter.Seq2[int, natslog.Msg] {
	return func(yield func(int, natslog.Msg) bool) {
		for i, m := range msgs {
			if !strings.Contains(m.Subject, ".key.") && !strings.Contains(m.Subject, ".batch.") && !yield(i, m) {
				return
			}
		}
	}
}

func decode(t *testing.T, data []byte) *logv1.Batch {
	t.Helper()
	return batchOf(data)
}

func batchOf(data []byte) *logv1.Batch {
	var b logv1.Batch
	if err := b.UnmarshalVT(data); err != nil {
		panic(err)
	}
	return &b
}

// noOwners know nothing and are always there.
func noOwners() owners.Owners {
	get := func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
		return &rpcv1.GetTaskResponse{}, nil
	}
	list := func(context.Context, int, *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
		return &rpcv1.ListTasksResponse{}, nil
	}
	return owners.Owners{
		HistoryGet: get, TimerGet: get, HistoryList: list, TimerList: list,
		HistoryKeys: func(context.Context, int, *rpcv1.ListKeysRequest) (*rpcv1.ListKeysResponse, error) {
			return &rpcv1.ListKeysResponse{}, nil
		},
		HistoryWorkers: func(context.Context, int, *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error) {
			return &rpcv1.ListWorkersResponse{}, nil
		},
		HistoryStuck: func(context.Context, int, *rpcv1.StuckTasksRequest) (*yardv1.StuckTasksResponse, error) {
			return &yardv1.StuckTasksResponse{}, nil
		},
		HistoryBatch: func(context.Context, int, *rpcv1.CountBatchRequest) (*rpcv1.CountBatchResponse, error) {
			return &rpcv1.CountBatchResponse{}, nil
		},
		HistoryDescribe: func(context.Context, int, *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
			return &rpcv1.DescribePartitionResponse{}, nil
		},
		TimerDescribe: func(context.Context, int, *rpcv1.DescribeWaitingRequest) (*rpcv1.DescribeWaitingResponse, error) {
			return &rpcv1.DescribeWaitingResponse{}, nil
		},
		TimerAhead: func(context.Context, int, *rpcv1.CountAheadRequest) (*rpcv1.CountAheadResponse, error) {
			return &rpcv1.CountAheadResponse{}, nil
		},
		MatchingDescribe: func(context.Context, int, *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
			return &rpcv1.DescribeShardResponse{}, nil
		},
	}
}

// rig is a gateway with everything around it in memory.
type rig struct {
	*Gateway
	verbs
	config  Config
	metrics *telemetry.Metrics
	log     *memLog
	bus     *memBus
	catalog *memCatalog
	// answered is how many batches of events were given their verdicts by ask.
	answered int
}

// verbs are those of all rooms.
type verbs struct {
	*intake.Intake
	*poll.Polls
	*outcome.Outcomes
	*query.Queries
	*settings.Settings
	*operate.Operator
	*batches.Batches
}

const (
	rigPartitions = 3
	rigShards     = 2
	rigEpoch      = 1 // of every shard
)

var rigTokens = ids.NewTokens([ids.TokenSecretBytes]byte{1})

func newRig(t *testing.T, change ...func(*Deps)) *rig {
	t.Helper()
	r := &rig{log: newMemLog(rigPartitions), bus: &memBus{}, catalog: newMemCatalog()}
	m, err := telemetry.NewMetrics()
	testkit.NoError(t, err)
	d := Deps{
		Metrics: m, Config: DefaultConfig(), Partitioning: topology.Partitioning{History: rigPartitions, Matching: rigShards},
		Tokens:  rigTokens,
		History: r.log, DeadLetters: new(memLetters), Batches: memBatches{}, Schedules: noSchedules{}, Bus: r.bus, Owners: noOwners(), Catalog: r.catalog.Catalog, Settings: r.catalog.kv,
		LogVersion: func() uint32 { return 1 },
	}
	d.Config.DirectStarts = false // but for the tests of them
	for _, f := range change {
		f(&d)
	}
	g, err := New(d)
	testkit.NoError(t, err)
	r.Gateway, r.config, r.metrics = g, d.Config, d.Metrics
	r.verbs = verbs{g.Intake, g.Polls, g.Outcomes, g.Queries, g.Settings, g.Operator, g.Batches}
	r.opened(rigEpoch)
	return r
}

// running runs the rig's loop until the test ends.
func (r *rig) running(t *testing.T) *rig {
	stop, ended := r.started()
	t.Cleanup(func() {
		stop()
		testkit.Equal(t, "the end", <-ended, nil)
	})
	return r
}

// onRig runs a test in a bubble, on a rig of its own, which does not run.
func onRig(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t)) })
}

// onRunning is onRig with a rig that runs.
func onRunning(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	onRig(t, func(t *testing.T, r *rig) { test(t, r.running(t)) })
}

// started runs the rig until stop is called.
func (r *rig) started() (stop func(), ended <-chan error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	return stop, done
}

// opened has an owner of each shard open an epoch.
func (r *rig) opened(epoch uint64) {
	for m := range rigShards {
		r.Opened(m, epoch)
	}
}

// heals ends what befalls appends.
func (l *memLog) heals() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = nil
}

// call is a request that came now.
func (r *rig) call() call.Call {
	now := time.Now()
	return call.Call{Domain: "shop", JSON: true, Reply: "asker", Received: now, Now: now, Deadline: now.Add(r.config.RequestTimeout)}
}

// reply is what a request was answered with.
type reply struct {
	resp codec.Message
	err  error
	at   time.Time
}

// answers returns an Answer and where it leads to. The request is counted as
// open until then, as the API does it.
func (r *rig) answers(t *testing.T) (call.Answer, <-chan reply) {
	t.Helper()
	place, err := r.Run.Admit("shop", 1)
	testkit.NoError(t, err)
	got := make(chan reply, 2)
	return func(resp codec.Message, err error) {
		got <- reply{resp, err, time.Now()}
		r.Run.Release(place)
	}, got
}

func (r *rig) submit(t *testing.T, req *yardv1.SubmitRequest) <-chan reply {
	got := sent(t, r, r.Submit, req)
	return got
}

// submitBy is submit with a deadline, at a frontend whose clock is ahead of the log's.
func (r *rig) submitBy(t *testing.T, req *yardv1.SubmitRequest, within, ahead time.Duration) <-chan reply {
	t.Helper()
	answer, got := r.answers(t)
	c := r.call()
	c.Deadline, c.Now = c.Received.Add(within), c.Now.Add(ahead)
	r.Submit(c, req, answer)
	return got
}

// tasks is a good request of n tasks.
func tasks(n int) *yardv1.SubmitRequest {
	req := &yardv1.SubmitRequest{Tasklist: "main"}
	for i := range n {
		req.Tasks = append(req.Tasks, &yardv1.NewTask{Type: "email", Payload: &yardv1.Payload{Data: fmt.Appendf(nil, "%d", i)}})
	}
	return req
}
