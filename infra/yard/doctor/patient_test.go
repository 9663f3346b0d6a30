package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

const (
	within = time.Minute
	domain = "shop"
	list   = "mail"
	// older is how much older all that is stored is made: old enough to be said something of.
	older = 5 * time.Minute
)

var one = topology.Partitioning{History: 1, Matching: 1}

// start runs an engine on a folder until stop is called.
func start(t *testing.T, cfg stack.Config) *stack.Stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, cfg)
	testkit.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *stack.Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	testkit.Check(t, s.Close(ctx))
}

func client(t *testing.T, s *stack.Stack) *yard.Client {
	t.Helper()
	c, err := yard.Connect(s.URL, domain)
	testkit.NoError(t, err)
	t.Cleanup(c.Close)
	testkit.NoError(t, testkit.Err(c.Admin().PutDomain(t.Context(), yard.Domain{Name: domain})))
	return c
}

// work runs a worker until the test's end: "fat" and "slim" succeed, "bad" fails for good.
func work(t *testing.T, c *yard.Client) {
	t.Helper()
	w := yard.NewWorker(c, list)
	for _, kind := range []string{"fat", "slim", "late"} {
		yard.Handle(w, kind, func(context.Context, json.RawMessage) (string, error) { return "done", nil })
	}
	yard.Handle(w, "bad", func(context.Context, json.RawMessage) (string, error) { return "", yard.NonRetryable(errors.New("no")) })
	yard.Handle(w, "shaky", func(ctx context.Context, _ json.RawMessage) (string, error) { return "", errors.New("not now") })
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Check(t, <-ended)
	})
}

// ward is the data of an engine that is stopped: tasks of each kind, each at its home.
func ward(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	services := stack.DefaultServices()
	services.History.Partition.PurgeEvery, services.History.Partition.SnapshotEvery = time.Hour, 300*time.Millisecond // so that the log has all of it
	t.Run("ward", func(t *testing.T) {
		s := start(t, stack.Config{DataDir: dir, Sync: "10m", Tables: stack.TablesMemory, Partitioning: one, Services: &services})
		c := client(t, s)
		work(t, c)
		var tasks []yard.Task
		for range 72 { // enough for an index, and for a page of ten minutes
			tasks = append(tasks, yard.Task{Type: "fat", Tasklist: list, Payload: strings.Repeat("x", 60_000)})
		}
		for range 2 {
			tasks = append(tasks, yard.Task{Type: "slim", Tasklist: list}, yard.Task{Type: "bad", Tasklist: list},
				yard.Task{Type: "late", Tasklist: list, Delay: 300 * time.Millisecond}, yard.Task{Type: "waits", Tasklist: list, Delay: time.Hour})
		}
		for _, task := range tasks {
			testkit.NoError(t, testkit.Err(c.Submit(t.Context(), task)))
		}
		keys := []yard.Task{
			{Type: "slim", Tasklist: list, Unique: &yard.Unique{Key: "short"}},
			{Type: "waits", Tasklist: list, Delay: time.Hour, Unique: &yard.Unique{Key: "waits"}},
		}
		testkit.NoError(t, testkit.Err(c.SubmitEach(t.Context(), keys)))
		b, err := c.NewBatch(t.Context(), "ward", yard.BatchOptions{Callback: &yard.Task{Type: "late", Tasklist: list}})
		if err == nil {
			_, err = b.Add(t.Context(), []yard.Task{{Type: "fat", Tasklist: list}, {Type: "fat", Tasklist: list}})
		}
		if err == nil {
			_, err = b.Close(t.Context())
		}
		testkit.NoError(t, err)
		testkit.Eventually(t, within, func() error {
			waiting, ended := 0, 0
			for task, err := range c.Tasks(t.Context(), yard.Filter{Limit: 100}) {
				switch {
				case err != nil:
					return err
				case task.State == yard.StateWaiting:
					waiting++
				case task.State == yard.StateCompleted || task.State == yard.StateDead:
					ended++
				}
			}
			if waiting != 3 || ended != 82 {
				return fmt.Errorf("%d tasks wait and %d have ended", waiting, ended)
			}
			return nil
		})
		nc, err := s.Connect("test")
		testkit.NoError(t, err)
		js, err := jetstream.New(nc)
		testkit.NoError(t, err)
		stored(t, js)
		nc.Close()
	})
	return dir
}

// stored waits until the snapshot says that all of the log is stored elsewhere.
func stored(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		kv, err := js.KeyValue(t.Context(), topology.CheckpointsBucket)
		if err != nil {
			return err
		}
		e, err := kv.Get(t.Context(), topology.HistoryCheckpoint(0))
		if err != nil {
			return err
		}
		var cp logv1.Checkpoint
		if err := cp.UnmarshalVT(e.Value()); err != nil {
			return err
		}
		named := cp.GetSnapshot()
		r := last(t, js, topology.SnapshotStream(0), topology.Snapshot(0, named.GetEpoch(), named.GetSeq(), 0))
		if r == nil {
			return errors.New("there is no snapshot")
		}
		var snapshot logv1.SnapshotChunk
		if err := snapshot.UnmarshalVT(r.Data); err != nil {
			return err
		}
		for _, l := range snapshot.Head.Lanes {
			r := last(t, js, topology.HistoryStream(0), topology.SubmitLane(0, ids.Lane(l.Lane)))
			if r != nil && l.ReadSeq < r.Sequence || len(snapshot.Tasks) > 0 {
				return fmt.Errorf("lane %d is read up to %d of %d, %d tasks are left", l.Lane, l.ReadSeq, r.Sequence, len(snapshot.Tasks))
			}
		}
		return nil
	})
}

func last(t *testing.T, js jetstream.JetStream, stream, subject string) *jetstream.RawStreamMsg {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	testkit.NoError(t, err)
	m, err := s.GetLastMsgForSubject(t.Context(), subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	testkit.NoError(t, err)
	return m
}

// patient is a copy of a ward on a server, without services; heartbeats say that there are some.
type patient struct {
	t       *testing.T
	js      jetstream.JetStream
	members map[string]ownership.Announcement
}

func admit(t *testing.T, ward string) *patient {
	t.Helper()
	dir := t.TempDir()
	testkit.NoError(t, os.CopyFS(dir, os.DirFS(ward)))
	srv := natskit.Run(t, natskit.WithOptions(func(o *server.Options) { o.StoreDir, o.SyncAlways = dir, false }))
	js, err := jetstream.New(srv.Connect(t))
	testkit.NoError(t, err)
	// The streams in memory are lost with their server.
	testkit.NoError(t, provision.Apply(t.Context(), js, one, provision.Options{}))
	p := &patient{t, js, map[string]ownership.Announcement{}}
	for _, service := range []string{"history", "timer", "matching"} {
		p.member(service, ownership.Announcement{LogVersion: 1, Holds: []int{0}})
	}
	return p
}

// member has a process of a service be alive.
func (p *patient) member(service string, a ownership.Announcement) { p.members[service] = a }

// beat shows the heartbeats of all members.
func (p *patient) beat() {
	p.t.Helper()
	kv, err := p.js.KeyValue(p.t.Context(), topology.MembersBucket)
	testkit.NoError(p.t, err)
	for service, a := range p.members {
		value, err := json.Marshal(a)
		testkit.NoError(p.t, err)
		testkit.NoError(p.t, testkit.Err(kv.Put(p.t.Context(), topology.MemberKey(service, "n"), value)))
	}
}

func (p *patient) stream(name string) jetstream.Stream {
	p.t.Helper()
	s, err := p.js.Stream(p.t.Context(), name)
	testkit.NoError(p.t, err)
	return s
}

// message is a stored one.
type message struct {
	subject string
	seq     uint64
	data    []byte
}

// messages are those of a stream, as they lie.
func (p *patient) messages(stream string) (all []message) {
	p.t.Helper()
	s := p.stream(stream)
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(p.t.Context(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		testkit.NoError(p.t, err)
		all = append(all, message{m.Subject, seq, m.Data})
	}
	return all
}

// tasks calls do with each record of a stream that holds batches of tasks.
func (p *patient) records(stream string, subject func(string) bool, do func(m message, r *logv1.Record)) {
	p.t.Helper()
	for _, m := range p.messages(stream) {
		var b logv1.Batch
		if !subject(m.subject) {
			continue
		}
		testkit.NoError(p.t, b.UnmarshalVT(m.data))
		for _, r := range b.Tasks {
			do(m, r)
		}
	}
}

// typed are the messages of a stream with a task of a type.
func (p *patient) typed(stream string, subject func(string) bool, taskType string) (all []message, records []*logv1.Record) {
	p.t.Helper()
	p.records(stream, subject, func(m message, r *logv1.Record) {
		if r.Type == taskType {
			all, records = append(all, m), append(records, r)
		}
	})
	if len(all) == 0 {
		p.t.Fatalf("%s has no task of type %s", stream, taskType)
	}
	return all, records
}

func (p *patient) remove(stream string, seq uint64) {
	p.t.Helper()
	testkit.NoError(p.t, p.stream(stream).DeleteMsg(p.t.Context(), seq))
}

func (p *patient) put(subject string, data []byte, header ...string) uint64 {
	p.t.Helper()
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		m.Header.Set(header[i], header[i+1])
	}
	ack, err := p.js.PublishMsg(p.t.Context(), m)
	testkit.NoError(p.t, err)
	return ack.Sequence
}

// checkpoint changes the checkpoint of the partition.
func (p *patient) checkpoint(change func(*logv1.Checkpoint)) {
	p.t.Helper()
	kv, err := p.js.KeyValue(p.t.Context(), topology.CheckpointsBucket)
	testkit.NoError(p.t, err)
	e, err := kv.Get(p.t.Context(), topology.HistoryCheckpoint(0))
	testkit.NoError(p.t, err)
	var cp logv1.Checkpoint
	testkit.NoError(p.t, cp.UnmarshalVT(e.Value()))
	change(&cp)
	testkit.NoError(p.t, testkit.Err(kv.Put(p.t.Context(), topology.HistoryCheckpoint(0), testkit.Encoded(p.t, &cp))))
}

// examine looks twice, a moment apart.
func (p *patient) examine(opts doctor.Options) *doctor.Report {
	p.t.Helper()
	opts.Looks, opts.Wait = 2, time.Millisecond
	opts.Progress = func(string) { p.beat() }
	report, err := doctor.Examine(p.t.Context(), p.js, nil, doctor.Ahead(opts, older))
	testkit.NoError(p.t, err)
	return report
}

func codesOf(r *doctor.Report) (all []doctor.Code) {
	for _, f := range r.Findings {
		all = append(all, f.Code)
	}
	return all
}

func submits(s string) bool  { return topology.IsSubmit(0, s) }
func waiting(s string) bool  { return s != topology.TimerFence(0) }
func archived(s string) bool { return topology.IsArchiveTasks(0, s) }

// fire parks a task, and has the timer's cursor be past it.
func (p *patient) fire(number uint64) *logv1.Record {
	p.t.Helper()
	_, records := p.typed(timer, waiting, "waits")
	r, id, now := records[0], ids.NewTaskID(time.Now(), 0, number), time.Now().UnixMilli()
	r.Id, r.DueAtMs, r.Unique = id[:], now, nil
	seq := p.put(topology.Timer(0, topology.TimerBucket(now)), testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{r}}))
	p.put(topology.Fired(0), testkit.Encoded(p.t, &logv1.Cursor{Epoch: 1, BaseDueMs: now, BaseSeq: seq}))
	return r
}

// early parks a task for an hour and has it fire early. It returns where the early message lies.
func (p *patient) early() uint64 {
	p.t.Helper()
	_, records := p.typed(timer, waiting, "waits")
	r, id, dueAt := records[0], ids.NewTaskID(time.Now(), 0, 98), time.Now().Add(time.Hour).UnixMilli()
	r.Id, r.DueAtMs, r.Unique = id[:], dueAt, nil
	p.put(topology.Timer(0, topology.TimerBucket(dueAt)), testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{r}}))
	return p.put(topology.Timer(0, topology.TimerBucket(dueAt)), testkit.Encoded(p.t, &logv1.Batch{Early: [][]byte{r.Id}, EarlyParkings: []uint32{r.Parkings}}))
}

func (p *patient) quarantine(q *logv1.Quarantined) {
	p.t.Helper()
	testkit.NoError(p.t, quarantine.Put(p.t.Context(), p.js.Conn(), q))
}

// rewrite stores the tasks of a type of a message of the archive again, as change leaves them, and those of other types as they are, in its place.
func (p *patient) rewrite(m message, taskType string, change func(*logv1.Record) bool) {
	p.t.Helper()
	var b logv1.Batch
	testkit.NoError(p.t, b.UnmarshalVT(m.data))
	b.Tasks = slices.DeleteFunc(b.Tasks, func(r *logv1.Record) bool { return r.Type == taskType && !change(r) })
	p.remove(topology.ArchiveStream(0), m.seq)
	p.put(m.subject, testkit.Encoded(p.t, &b))
}

// say stores a word on a unique key.
func (p *patient) say(key string, id ids.TaskID, freeAtMS int64) uint64 {
	p.t.Helper()
	return p.put(topology.UniqueKey(0, domain, key), testkit.Encoded(p.t, &logv1.UniqueKey{TaskId: id[:], Key: key, FreeAtMs: freeAtMS}))
}

// lastOf is the last message of a stream on subjects.
func (p *patient) lastOf(stream, subjects string) *jetstream.RawStreamMsg {
	p.t.Helper()
	m := last(p.t, p.js, stream, subjects)
	if m == nil {
		p.t.Fatalf("%s has nothing of %s", stream, subjects)
	}
	return m
}

// putRecord stores a record in place of the one before.
func (p *patient) putRecord(subject string, r interface{ MarshalVT() ([]byte, error) }) {
	p.t.Helper()
	p.put(subject, testkit.Encoded(p.t, r), jetstream.MsgRollup, jetstream.MsgRollupSubject)
}
