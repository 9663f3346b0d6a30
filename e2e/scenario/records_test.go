package scenario_test

import (
	"cmp"
	"encoding/base64"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// record names a folder for what TestI13EveryFieldIsWritten stores, such as
// contracts/logversion/testdata/v1.
var record = flag.String("record", "", "a folder to keep the stored records of a scenario in, seen from this package")

// unwritten are the fields that no healthy, short run writes. The
// archive's index follows after 1 MiB of tasks, the cursor's parts after a clock that ran ahead.
var unwritten = []string{
	"ArchivePage.base", "ArchivePage.fingerprints", "ArchivePage.offsets",
	"ArchivePage.log_version",
	// What was granted, was not received, and is in a snapshot or expires.
	"SnapshotTask.granted", "Event.undelivered",
	// An attempt of a worker that gives signs of life is in a snapshot if that is made meanwhile.
	"Attempt.signs_every_ms",
	// A domain fires apart when it fills chunks.
	"Cursor.apart", "Cursor.domain",
	"Cursor.ahead", "CursorPart.last_due_ms", "CursorPart.last_index", "CursorPart.last_seq", "CursorPart.seq",
	"Record.steps_dropped",
	// A task starts with its submit where a poll waits that need not go to matching.
	"Record.start",
	// Where there is one matching shard, an attempt is at no other.
	"SnapshotTask.shard",
	// A dead letter is deleted with the write that parks its task, a moment after it has come back.
	"SnapshotTask.letter", "SnapshotTask.letter_tasklist", "SnapshotTask.before",
	// A domain that floods lags behind its lane.
	"Admission.place", "Admission.kind", "SnapshotHead.queues", "SnapshotHead.fences",
	// A command waits for its task for a moment only.
	"SnapshotChunk.commands", "SnapshotCommand.at_ms", "SnapshotCommand.event", "SnapshotCommand.index", "SnapshotCommand.seq",
	"QueueCursor.place", "QueueCursor.lane", "QueueCursor.first_seq", "QueueCursor.last_seq", "QueueCursor.read_seq",
	// A batch expires after a minute at the soonest.
	"BatchHome.expired", "BatchEnds.expired",
}

// TestI13EveryFieldIsWritten: a short life of one partition writes every kind of record and
// every field, so that what it stores can be kept and replayed by later versions. R21.
func TestI13EveryFieldIsWritten(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "restarts a system of its own")
	services := stack.DefaultServices()
	services.History.Partition.SnapshotEvery = 300 * time.Millisecond
	services.History.Partition.PurgeEvery, services.Timer.Firing.PurgeEvery = time.Hour, time.Hour
	w := enter(t, own(t, stack.Config{
		Partitioning: topology.Partitioning{History: 1, Matching: 1}, Tables: stack.TablesMemory, Services: &services,
	}))
	liveThrough(w)
	stores := w.stores()
	seen := map[string]bool{}
	var index strings.Builder
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		for _, m := range stores[name] {
			stored := storedAs(name, m.Subject)
			if err := proto.Unmarshal(m.Data, stored); err != nil {
				t.Fatalf("%s %d: %v", m.Subject, m.Seq, err)
			}
			noteFields(stored.ProtoReflect(), seen)
			fmt.Fprintf(&index, "%s %d at %d, %s:\n%s\n\n", name, m.Seq, m.At, m.Subject, protojson.MarshalOptions{}.Format(stored))
		}
	}
	var missing []string
	for _, name := range []protoreflect.Name{"Policy", "Record", "Attempt", "Step", "Batch", "ArchivePage", "Event", "Turn", "EventBatch", "Cursor", "CursorPart", "Checkpoint", "LaneCursor", "Admission", "SnapshotRef", "SnapshotChunk", "SnapshotHead", "SnapshotTask", "QueueCursor", "Header", "Expiry", "Unique", "UniqueKey", "Update", "Updates", "Redrive", "Redriven", "Order", "BatchHome", "BatchClosed", "BatchEnds", "BatchCount"} {
		fields := logv1.File_yard_log_v1_log_proto.Messages().ByName(name).Fields()
		for i := range fields.Len() {
			if field := fieldName(fields.Get(i)); !seen[field] && !slices.Contains(unwritten, field) {
				missing = append(missing, field)
			}
		}
	}
	kinds := logv1.EventKind_name
	for k := range kinds {
		if kind := fmt.Sprint("kind ", k); k != 0 && !seen[kind] {
			missing = append(missing, kind+" "+kinds[k])
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		t.Fatalf("not written: %s", strings.Join(missing, ", "))
	}
	if *record == "" {
		return
	}
	for name, messages := range stores {
		writeMessages(t, filepath.Join(*record, name+".log"), messages)
	}
	testkit.NoError(t, os.WriteFile(filepath.Join(*record, "index.txt"), []byte(index.String()), 0o644))
}

// writeMessages writes a new file of messages, as testkit.ReadMessages reads it. It never replaces one: what was recorded is kept.
func writeMessages(tb testing.TB, path string, all []testkit.Message) {
	tb.Helper()
	var text strings.Builder
	for _, m := range all {
		fmt.Fprintln(&text, m.Seq, m.At, m.Subject, cmp.Or(base64.StdEncoding.EncodeToString(m.Data), testkit.NoData))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := f.WriteString(text.String()); err != nil {
		tb.Error(err)
	}
	if err := f.Close(); err != nil {
		tb.Error(err)
	}
}

// storedAs is an empty message of the type that a store holds under a subject.
func storedAs(store, subject string) proto.Message {
	switch {
	case subject == topology.Event(0):
		return new(logv1.Turn)
	case batchRecord(subject) != nil:
		return batchRecord(subject)
	case strings.HasPrefix(subject, strings.TrimSuffix(topology.UniqueKeyAny(0), ">")):
		return new(logv1.UniqueKey)
	case subject == topology.Fired(0):
		return new(logv1.Cursor)
	case store == "checkpoint":
		return new(logv1.Checkpoint)
	case store == "snapshot":
		return new(logv1.SnapshotChunk)
	case store == "archive" && !topology.IsArchiveTasks(0, subject):
		return new(logv1.ArchivePage) // or the mark that all is indexed, which is empty
	}
	return new(logv1.Batch)
}

// noteFields notes which fields are set in m, and the kinds of events.
func noteFields(m protoreflect.Message, seen map[string]bool) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		seen[fieldName(f)] = true
		switch {
		case fieldName(f) == "Event.kind":
			seen[fmt.Sprint("kind ", v.Enum())] = true
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				noteFields(v.List().Get(i).Message(), seen)
			}
		case f.Message() != nil:
			noteFields(v.Message(), seen)
		}
		return true
	})
}

func fieldName(f protoreflect.FieldDescriptor) string {
	return string(f.Parent().Name()) + "." + string(f.Name())
}

// stores are the messages of the stores of partition 0, in the order in which a takeover
// reads them.
func (w *world) stores() map[string][]testkit.Message {
	w.t.Helper()
	js := w.inside()
	checkpoints, err := js.KeyValue(w.soon(), topology.CheckpointsBucket)
	testkit.NoError(w.t, err)
	cp, err := checkpoints.Get(w.soon(), topology.HistoryCheckpoint(0))
	testkit.NoError(w.t, err)
	read := func(stream string) (all []testkit.Message) {
		err := natslog.ReadAll(w.soon(), js, natslog.ReadConfig{Stream: stream}, func(r natslog.Record) error {
			all = append(all, testkit.Message{Subject: r.Subject, Seq: r.Seq, At: r.Time.UnixMilli(), Data: slices.Clone(r.Data)})
			return nil
		})
		testkit.NoError(w.t, err)
		return all
	}
	stores := map[string][]testkit.Message{
		"checkpoint": {{Subject: cp.Key(), Seq: cp.Revision(), At: cp.Created().UnixMilli(), Data: cp.Value()}},
	}
	stores["timer"], stores["archive"] = read(topology.TimerStream(0)), read(topology.ArchiveStream(0))
	stores["history"], stores["snapshot"] = read(topology.HistoryStream(0)), read(topology.SnapshotStream(0))
	return stores
}

// traceparent and soon are what tasks have that are traced, or retried.
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func soon() *yardv1.RetryPolicy {
	return &yardv1.RetryPolicy{
		MaxAttempts: 3, InitialIntervalMs: 100, Backoff: 2, MaxIntervalMs: 1000, NonRetryable: []string{"Never"},
		ByError: []*yardv1.ErrorRetry{{ErrorType: "Busy", InitialIntervalMs: 50, Backoff: 3, MaxIntervalMs: 500, MaxAttempts: 4}},
		Jitter:  yardv1.Jitter_JITTER_EQUAL, MaxDeliveries: 10_000,
	}
}

// liveThrough gives tasks every fate that there is. Some are left on their way.
func liveThrough(w *world) {
	w.putType(yard.TaskType{Name: "back", MaxConcurrency: 1})
	long := w.submitOne(&yardv1.NewTask{
		Type: "long", StartToCloseMs: 3_600_000, HeartbeatTimeoutMs: 1_800_000, Payload: jsonPayload(`"long"`), Traceparent: traceparent,
	})
	working := w.takeOne("long")
	progress := &yardv1.Beat{TaskId: long, Token: working.Token, Progress: &yardv1.Payload{Data: []byte("half"), Encoding: yardv1.Encoding_ENCODING_BINARY}}
	must[yardv1.OutcomeResponse](w, "tasks.heartbeat", &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{progress}})

	for priority := int32(1); priority <= 5; priority++ {
		w.submitOne(&yardv1.NewTask{Type: "plain", Priority: priority, Payload: &yardv1.Payload{Data: []byte{0, 1}, Encoding: yardv1.Encoding_ENCODING_BINARY}})
	}
	plain := w.take(5, "plain")
	w.complete(plain[:4]...)
	must[yardv1.OutcomeResponse](w, "tasks.complete", &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{{
		TaskId: plain[4].TaskId, Token: plain[4].Token, Result: &yardv1.Payload{Data: []byte{9}, Encoding: yardv1.Encoding_ENCODING_BINARY},
	}}})
	equal(w.t, "repeated", w.complete(plain[0]), "OK")
	equal(w.t, "contradicted", w.fail(plain[0], &yardv1.Failure{Message: "no"}), "STALE")

	failInEveryWay(w)
	delayed := w.submit(&yardv1.NewTask{Type: "delayed", DelayMs: 300, Headers: map[string]string{"order": "7"}, Group: "acme", Cost: 2}, &yardv1.NewTask{Type: "delayed", DelayMs: 300})
	w.complete(w.take(2, "delayed")...)
	unique := &yardv1.NewTask{Type: "delayed", DelayMs: 300, UniqueKey: "order-7", UniqueForMs: 60_000}
	once := w.submitOne(unique)
	equal(w.t, "the task that has the key", w.submitOne(unique), once)
	w.complete(w.take(1, "delayed")...)
	eighth := w.submitOne(&yardv1.NewTask{Type: "delayed", DelayMs: 3_600_000, UniqueKey: "order-8"})
	equal(w.t, "the task that is replaced", w.submitOne(&yardv1.NewTask{
		Type: "delayed", DelayMs: 3_600_000, UniqueKey: "order-8", OnConflict: yardv1.OnConflict_ON_CONFLICT_REPLACE, UniqueForMs: 1, Cost: 2, Traceparent: traceparent,
	}), eighth)
	ordered := &yardv1.NewTask{Type: "delayed", DelayMs: 3_600_000, UniqueKey: "order-9", OrderKey: "account-9"}
	ninth := w.submitOne(ordered)
	ordered.OnConflict, ordered.OrderPolicy = yardv1.OnConflict_ON_CONFLICT_REPLACE, yardv1.OrderPolicy_ORDER_POLICY_BLOCK
	equal(w.t, "the task that is replaced, in its order", w.submitOne(ordered), ninth)
	w.submit(&yardv1.NewTask{Type: "keyed", OrderKey: "account-7"}, &yardv1.NewTask{Type: "keyed", OrderKey: "account-7"})
	w.complete(w.takeOne("keyed"))
	w.complete(w.takeOne("keyed"))
	skipped := w.submitOne(&yardv1.NewTask{Type: "skipped", OrderKey: "account-6"})
	w.untilFirst(skipped)
	must[yardv1.SkipKeyResponse](w, "keys.skip", &yardv1.SkipKeyRequest{OrderKey: "account-6", CancelRunning: true})
	equal(w.t, "skipped", w.ended(skipped).State.Name(), "dead")
	blocks := w.submitOne(&yardv1.NewTask{Type: "keyed", OrderKey: "account-7", OrderPolicy: yardv1.OrderPolicy_ORDER_POLICY_BLOCK})
	w.fail(w.takeOne("keyed"), &yardv1.Failure{NonRetryable: true})
	equal(w.t, "it blocks its key", w.reach(blocks, "backoff").Blocked, true)
	must[yardv1.UnblockKeyResponse](w, "keys.unblock", &yardv1.UnblockKeyRequest{OrderKey: "account-7", Retry: &yardv1.RetryPolicy{MaxAttempts: 2}})
	w.fail(w.takeOne("keyed"), &yardv1.Failure{NonRetryable: true})
	w.reach(blocks, "backoff")
	w.cancel(blocks)
	w.ended(delayed[0])
	later := w.submitOne(&yardv1.NewTask{Type: "delayed", DelayMs: 3_600_000})
	w.reach(later, "waiting")
	w.cancel(later)
	w.ended(later)
	byHand := w.submitOne(&yardv1.NewTask{Type: "delayed", DelayMs: 3_600_000})
	must[yardv1.OutcomeResponse](w, "tasks.end", &yardv1.EndTasksRequest{TaskIds: []string{byHand}, State: yardv1.TaskState_TASK_STATE_COMPLETED, By: "ann"})
	w.ended(byHand)
	w.ended(w.submitOne(&yardv1.NewTask{Type: "expires", DelayMs: 200, StartWithinMs: 200, FinishWithinMs: 300}))
	endBatches(w)
	changeTerms(w)
	makeRoom(w)
	loseWorker(w)
	changeSome(w)
	redriveSome(w)
	leaveOnTheWay(w)
	w.drained()
}

// changeSome updates a task that is ready, then one that waits in the timer store, then two at once.
func changeSome(w *world) {
	id := w.submitOne(&yardv1.NewTask{Type: "changed"})
	w.reach(id, "ready")
	w.changed(&yardv1.TaskUpdate{
		TaskId: id, IfRevision: 1, Priority: 2, DelayMs: 3_600_000, Retry: soon(), StartWithinMs: 60_000, FinishWithinMs: 60_000,
		Group: "acme", Headers: map[string]string{"order": "8"}, Payload: &yardv1.Payload{Data: []byte{1}, Encoding: yardv1.Encoding_ENCODING_BINARY},
	}, 2)
	w.reach(id, "waiting")
	w.changed(&yardv1.TaskUpdate{TaskId: id, RunNow: true}, 3)
	p := w.takeOne("changed")
	equal(w.t, "while it runs", w.update(&yardv1.TaskUpdate{TaskId: id, Priority: 1}).Code, "FAILED_PRECONDITION")
	w.complete(p)
	w.ended(id)
	var both []string
	request := &yardv1.UpdateRequest{}
	for range 2 {
		id := w.submitOne(&yardv1.NewTask{Type: "idle"})
		both, request.Tasks = append(both, id), append(request.Tasks, &yardv1.TaskUpdate{TaskId: id, Priority: 2})
	}
	w.outcome("tasks.update", request)
	for _, id := range both {
		w.cancel(id)
		w.ended(id)
	}
}

// redriveSome brings two dead letters back in one message.
func redriveSome(w *world) {
	all := w.dead(2, "redriven", "network")
	w.redrive(&yardv1.RedriveRequest{TaskIds: all, Retry: soon(), By: "ann"})
	for _, p := range w.take(2, "redriven") {
		w.fail(p, &yardv1.Failure{Message: "no", NonRetryable: true})
	}
	again := int64(0)
	w.eventually(func() error {
		if again += w.redrive(&yardv1.RedriveRequest{TaskIds: all, Tasklist: list}).Redriven; again < 2 {
			return errNothing
		}
		return nil
	})
	w.complete(w.take(2, "redriven")...)
	for _, id := range all {
		w.ended(id)
	}
}

// makeRoom has limits that are full end a task that waits, and an attempt that runs.
func makeRoom(w *world) {
	for name, policy := range map[string]yard.OnFull{"rejects": yard.OnFullRejectNewest, "displaces": yard.OnFullCancelOldest} {
		testkit.NoError(w.t, testkit.Err(w.client.PutLimit(w.soon(), yard.Limit{Name: name, MaxConcurrency: 1, OnFull: policy, OnFullAfter: 100 * time.Millisecond})))
		w.putType(yard.TaskType{Name: name, Limits: []string{name}})
		once := soon()
		once.OnLost, once.OnTimeout = yardv1.OnLost_ON_LOST_DEAD, yardv1.OnTimeout_ON_TIMEOUT_DEAD
		first := w.submitOne(&yardv1.NewTask{Type: name, Retry: once})
		runs := w.takeOne(name)
		second := w.submitOne(&yardv1.NewTask{Type: name})
		w.eventually(func() error { // a task waits for a slot while a poll waits for it
			tasks, err := w.poll(&yardv1.PollRequest{Tasklist: list, Types: []string{name}, MaxTasks: 1, WaitMs: 500})
			for _, task := range tasks { // the limit was not known yet
				w.fail(task, &yardv1.Failure{NotStarted: true})
			}
			if err != nil || w.get(first).CancelRequested || w.get(second).State.Finished() {
				return err
			}
			return fmt.Errorf("%s does nothing yet", name)
		})
		w.fail(runs, &yardv1.Failure{Message: "asked to, or done"})
		for _, id := range []string{first, second} {
			w.cancel(id)
			w.ended(id)
		}
	}
}

// loseWorker has a worker fall silent that runs an attempt without heartbeats.
func loseWorker(w *world) {
	const worker = "a-worker-that-dies"
	id := w.submitOne(&yardv1.NewTask{Type: "lost"})
	poll := func(worker string) (all []*yardv1.PolledTask) {
		w.eventually(func() (err error) {
			all, err = w.poll(&yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 20_000, Types: []string{"lost"}, WorkerId: worker})
			if err == nil && len(all) == 0 {
				err = errNothing
			}
			return err
		})
		return all
	}
	poll(worker)
	w.eventually(func() error {
		if err := w.nc.Publish(topology.AliveHint(w.domain), []byte(`{"worker_id":"`+worker+`","every_ms":500}`)); err != nil {
			return err
		}
		live, err := w.client.Workers(w.soon())
		if err == nil && len(live.All) == 0 {
			err = errNothing
		}
		return err
	})
	w.reach(id, "ready")
	w.complete(poll("a-worker-that-lives")...) // for a moment, what the other one is given is taken back
	w.ended(id)
}

// failInEveryWay ends attempts in all ways but success.
func failInEveryWay(w *world) {
	for _, kind := range []string{"retried", "overdue", "silent", "back", "stopped"} {
		task := &yardv1.NewTask{Type: kind, Retry: soon(), Traceparent: traceparent}
		switch kind {
		case "overdue":
			task.StartToCloseMs, task.Retry.MaxAttempts = 200, 1000
		case "silent":
			task.HeartbeatTimeoutMs = 200
		}
		id := w.submitOne(task)
		first := w.takeOne(kind)
		switch kind {
		case "retried":
			w.fail(first, &yardv1.Failure{Message: "not now", ErrorType: "Busy"})
		case "back":
			w.fail(first, &yardv1.Failure{NotStarted: true})
		case "stopped":
			w.cancel(id)
			w.fail(first, &yardv1.Failure{Message: "asked to"})
			w.ended(id)
			continue
		}
		w.eventually(func() error { // on a slow machine an attempt may be over before it is answered
			next := w.takeOne(kind)
			end := func() string { return w.complete(next) }
			if kind == "overdue" {
				end = func() string { return w.fail(next, &yardv1.Failure{Message: "enough", NonRetryable: true}) }
			}
			if code := end(); code != "OK" {
				return fmt.Errorf("an attempt of %s ends %s", kind, code)
			}
			return nil
		})
		w.ended(id)
	}
}

// leaveOnTheWay leaves tasks that are ready, waiting, parked after a failure, back from there,
// and in backoff.
func leaveOnTheWay(w *world) {
	w.cancel(w.submitOne(&yardv1.NewTask{Type: "unwanted"}))
	w.submit(&yardv1.NewTask{Type: "ready", Priority: 2}, &yardv1.NewTask{Type: "ready", Tasklist: "other"}, &yardv1.NewTask{Type: "delayed", DelayMs: 7_200_000})
	parked := w.submitOne(&yardv1.NewTask{Type: "parked", Retry: soon()})
	w.fail(w.takeOne("parked"), &yardv1.Failure{Message: "later", ErrorType: "Busy", DelayMs: 3_600_000})
	w.parked(parked)
	returns := w.submitOne(&yardv1.NewTask{Type: "returns", Retry: soon()})
	w.fail(w.takeOne("returns"), &yardv1.Failure{Message: "soon", DelayMs: 11_000, Snooze: true})
	w.reach(returns, "ready")
	w.submitOne(&yardv1.NewTask{Type: "backoff", Retry: &yardv1.RetryPolicy{InitialIntervalMs: 9_000}})
	w.fail(w.takeOne("backoff"), &yardv1.Failure{Message: "no"})
}

// drained waits until the checkpoint names a snapshot of the last turn.
func (w *world) drained() {
	w.t.Helper()
	w.eventually(func() error {
		stores := w.stores()
		var cp logv1.Checkpoint
		if err := cp.UnmarshalVT(stores["checkpoint"][0].Data); err != nil {
			return err
		}
		events := uint64(0)
		for _, m := range stores["history"] {
			if m.Subject == topology.Event(0) {
				events = m.Seq
			}
		}
		if cp.GetSnapshot().GetSeq() < events {
			return fmt.Errorf("the checkpoint says %v, the last event is %d", &cp, events)
		}
		return nil
	})
}
