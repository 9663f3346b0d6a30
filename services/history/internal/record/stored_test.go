package record_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/archive"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The stores of one partition, as a cluster has written them once.
type stores struct {
	log, timer, archive, snapshot []testkit.Message
	checkpoint                    *logv1.Checkpoint
}

func storesOf(t *testing.T) (s stores) {
	t.Helper()
	read := func(name string) []testkit.Message {
		return testkit.ReadMessages(t, "../../../../contracts/logversion/testdata/v1/"+name+".log")
	}
	s.log, s.timer, s.archive = read("history"), read("timer"), read("archive")
	s.archive = slices.DeleteFunc(s.archive, func(m testkit.Message) bool { return !topology.IsArchiveTasks(0, m.Subject) })
	s.snapshot, s.checkpoint = read("snapshot"), new(logv1.Checkpoint)
	testkit.NoError(t, s.checkpoint.UnmarshalVT(read("checkpoint")[0].Data))
	return s
}

// inputs are the messages of the log as a replica takes them; those of the timer's cursor are
// not for it.
func (s *stores) inputs(t *testing.T) (all []replica.Input) {
	t.Helper()
	dec := record.NewDecoder()
	for _, m := range s.log {
		lane, submit := topology.LaneOf(0, m.Subject)
		switch {
		case submit:
			tasks, bad, err := dec.Submits(m.Data, time.UnixMilli(m.At))
			if err != nil || len(bad) > 0 {
				t.Fatalf("message %d: %v %v", m.Seq, bad, err)
			}
			all = append(all, &replica.Submits{Lane: lane, Place: topology.PlaceOfSubmit(0, m.Subject), Seq: m.Seq, At: m.At, Bytes: len(m.Data), Tasks: tasks})
		case m.Subject == topology.Event(0):
			stored, err := record.ReadTurn(m.Data)
			if err != nil {
				t.Fatalf("message %d: %v", m.Seq, err)
			}
			turn, err := dec.Turn(&stored, m.Seq, m.At)
			if err != nil {
				t.Fatalf("message %d: %v", m.Seq, err)
			}
			all = append(all, turn)
		}
	}
	return all
}

// TestI13StoredRecordsAreReadAsTheyWere: what was written means the same forever. R21.
func TestI13StoredRecordsAreReadAsTheyWere(t *testing.T) {
	s := storesOf(t)
	var b bytes.Buffer
	for _, in := range s.inputs(t) {
		switch in := in.(type) {
		case *replica.Submits:
			fmt.Fprintf(&b, "%d lane %s at %d\n", in.Seq, in.Lane, in.At)
			for _, e := range in.Tasks {
				writeTask(&b, &e.Task)
			}
		case *replica.Turn:
			fmt.Fprintf(&b, "%d turn at %d\n", in.Seq, in.At)
			for _, events := range in.Batches {
				writeEvents(&b, events)
			}
		}
	}
	for name, messages := range map[string][]testkit.Message{"timer": s.timer, "archive": s.archive} {
		var b bytes.Buffer
		for _, m := range messages {
			fmt.Fprintf(&b, "%d at %d\n", m.Seq, m.At)
			for _, e := range decoded(t, m) {
				writeTask(&b, &e.Task)
			}
		}
		testkit.Golden(t, "testdata/"+name+".txt", b.Bytes())
	}
	testkit.Golden(t, "testdata/history.txt", b.Bytes())
	testkit.Golden(t, "testdata/checkpoint.txt", []byte(stands(record.Checkpoint(s.checkpoint))))
}

// writeEvents writes a batch of a turn.
func writeEvents(b *bytes.Buffer, in *replica.Events) {
	fmt.Fprintf(b, "  events for %q %d\n", in.ReplyTo, in.RequestID)
	if in.Shard > 0 {
		fmt.Fprintf(b, "  of shard %d, epoch %d, delivered up to %d, for polls %s\n", in.Shard, in.Epoch, in.Delivered, pollsOf(in.Polls...))
	}
	for i := range in.Events {
		writeEvent(b, &in.Events[i])
	}
}

// decoded are the tasks of a message of any store.
func decoded(t *testing.T, m testkit.Message) []*replica.Entry {
	t.Helper()
	tasks, bad, err := record.NewDecoder().Submits(m.Data, time.UnixMilli(m.At))
	if err != nil || len(bad) > 0 {
		t.Fatalf("%s %d: %v %v", m.Subject, m.Seq, bad, err)
	}
	return tasks
}

// TestI13StoredRecordsAreWrittenAsTheyWere: a task that was read is written byte for byte as it was. R21.
func TestI13StoredRecordsAreWrittenAsTheyWere(t *testing.T) {
	s := storesOf(t)
	var enc record.Encoder
	for _, m := range slices.Concat(s.log, s.timer, s.archive) {
		if strings.HasPrefix(m.Subject, "yard.history.") && !topology.IsSubmit(0, m.Subject) {
			continue
		}
		var stored, again logv1.Batch
		testkit.NoError(t, stored.UnmarshalVT(m.Data))
		var data []byte
		for _, e := range decoded(t, m) {
			data = enc.AppendTask(data, &e.Task)
		}
		if stored.Epoch > 0 && !stored.Fence {
			if data = record.AppendStamp(data, stored.LogVersion, stored.Epoch); !bytes.Equal(data, m.Data) {
				t.Errorf("%s %d is written differently", m.Subject, m.Seq)
			}
			continue
		}
		if err := again.UnmarshalVT(data); err != nil || len(again.Tasks) != len(stored.Tasks) {
			t.Fatalf("%s %d: %d tasks of %d: %v", m.Subject, m.Seq, len(again.Tasks), len(stored.Tasks), err)
		}
		for i := range stored.Tasks {
			record.Date(stored.Tasks[i], time.UnixMilli(m.At))
			stored.Tasks[i].WithinMs, stored.Tasks[i].DelayMs = 0, 0 // they are of the submit, and are kept no longer
			if !proto.Equal(again.Tasks[i], stored.Tasks[i]) {
				t.Errorf("%s %d, task %d is %v, was %v", m.Subject, m.Seq, i, again.Tasks[i], stored.Tasks[i])
			}
		}
	}
	cp := record.Checkpoint(s.checkpoint)
	again := record.StoredCheckpoint(&cp)
	again.Epoch, again.Owner, again.Save = s.checkpoint.Epoch, s.checkpoint.Owner, s.checkpoint.Save
	again.LogVersion = s.checkpoint.LogVersion
	if !proto.Equal(again, s.checkpoint) {
		t.Errorf("the checkpoint is %v, was %v", again, s.checkpoint)
	}
	// No healthy short run writes a page, so its form is kept here.
	var entries []archive.Entry
	for _, m := range s.archive {
		for _, e := range decoded(t, m) {
			entries = append(entries, archive.Entry{Place: archive.Place{Fingerprint: archive.Fingerprint(e.ID), Seq: m.Seq}, Domain: e.Domain})
		}
	}
	var b bytes.Buffer
	for _, p := range archive.Paginate(entries) {
		fmt.Fprintf(&b, "%q level %d span %d base %d\n%x\n%x\n", p.Domain, p.Level, p.Span, p.Base, p.Fingerprints, p.Offsets)
	}
	testkit.Golden(t, "testdata/pages.txt", b.Bytes())
}

// snapshotOf is the snapshot that a checkpoint names; an empty one if it names none.
func (s *stores) snapshotOf(t *testing.T, ref *replica.SnapshotRef) *replica.Snapshot {
	t.Helper()
	if ref.Seq == 0 {
		return &replica.Snapshot{}
	}
	var chunks [][]byte
	for _, m := range s.snapshot {
		if epoch, seq, _, ok := topology.SnapshotOf(0, m.Subject); ok && epoch == ref.Epoch && seq == ref.Seq {
			chunks = append(chunks, m.Data)
		}
	}
	snap, err := record.NewDecoder().Snapshot(chunks, ref)
	testkit.NoError(t, err)
	return snap
}

// TestI13ATakeoverOfStoredRecords: an owner that takes over what was written comes to the same states, from the snapshot as from the beginning. R21.
func TestI13ATakeoverOfStoredRecords(t *testing.T) {
	s := storesOf(t)
	var b bytes.Buffer
	for _, from := range []*logv1.Checkpoint{{}, s.checkpoint} {
		fmt.Fprintf(&b, "from epoch %d\n", from.Epoch)
		s.takeOver(t, record.Checkpoint(from), &b)
	}
	testkit.Golden(t, "testdata/takeover.txt", b.Bytes())
}

// takeOver replays the log from a checkpoint and writes what comes of it.
func (s *stores) takeOver(t *testing.T, cp replica.Checkpoint, b *bytes.Buffer) {
	t.Helper()
	start := &replica.Start{
		Epoch: 99, Checkpoint: cp, Snapshot: s.snapshotOf(t, &cp.Snapshot), Parked: make(map[replica.Stay]bool), Archived: make(replica.Ends),
	}
	for _, m := range s.timer {
		for _, e := range decoded(t, m) {
			start.Parked[replica.Stay{ID: e.ID, Parkings: e.Parkings}] = m.Seq > start.Snapshot.TimerSeq
		}
		start.TimerSeq = m.Seq
	}
	for _, m := range s.archive {
		for _, e := range decoded(t, m) {
			if m.Seq > start.Snapshot.ArchiveSeq {
				start.Archived.Add(replica.Stay{ID: e.ID, Parkings: e.Parkings})
			}
		}
		start.ArchiveSeq = m.Seq
	}
	r := replica.New(replica.Config{Shards: 1, WindowTasks: 1000, WindowBytes: 1 << 20, SnapshotBytes: 1 << 20, SnapshotEveryMS: 1 << 40}, start)
	now := replica.Now{MS: s.log[len(s.log)-1].At}
	var fx replica.Effects
	step := func(in replica.Input) {
		if !r.Step(in, now, &fx) || fx.Halt != nil {
			t.Fatalf("the replica does not take %+v: %v", in, fx.Halt)
		}
		testkit.NoError(t, r.Check())
	}
	var all []ids.TaskID
	var submits []*replica.Submits
	for _, in := range s.inputs(t) {
		switch in := in.(type) {
		case *replica.Submits:
			submits = append(submits, in)
			for _, e := range in.Tasks {
				if !slices.Contains(all, e.ID) {
					all = append(all, e.ID)
				}
			}
		case *replica.Turn:
			if in.Seq <= start.Snapshot.Seq {
				continue
			}
			for _, admitted := range in.Admitted {
				for _, m := range submits {
					if m.Lane == admitted.Lane && m.Seq > r.ReadLevel(admitted.Queue) && m.Seq <= admitted.To {
						step(m)
					}
				}
			}
			step(in)
		}
	}
	step(replica.Recovered{})
	step(replica.Draining{})
	r.Flush(now, &fx)
	for _, id := range all {
		if task := r.Get(id); task != nil {
			writeTask(b, task)
		} else {
			fmt.Fprintf(b, "  %s is not in memory\n", id)
		}
	}
	fmt.Fprintf(b, "  archive %d, park %d, append %d, search %d, trigger", len(fx.Archive), len(fx.Park), len(fx.Append), len(fx.Searches))
	for _, g := range fx.Triggers {
		fmt.Fprintf(b, " %d %s/%s/%s p%d", len(g.Packed)/ids.TriggerBytes, g.Domain, g.Tasklist, g.Type, g.Priority)
	}
	fmt.Fprintf(b, "\n  stands at %s", stands(r.Checkpoint()))
}

// stands shows a checkpoint.
func stands(cp replica.Checkpoint) string { return fmt.Sprintf("%+v\n", cp) }

func writeTask(b *bytes.Buffer, t *taskstate.Task) {
	fmt.Fprintf(b, "  %s %s/%s/%s p%d %s v%d failures=%d lost=%d parkings=%d at=%d/%s before=%d due=%d ready=%d finished=%d cancel=%v/%q\n",
		t.ID, t.Domain, t.Tasklist, t.Type, t.Priority, t.State, t.Version, t.Failures, t.Lost, t.Parkings,
		t.Position.Seq(), t.Position.Lane(), t.Before.Seq(), t.DueAt, t.ReadyAt, t.FinishedAt, t.CancelRequested, t.CancelReason)
	fmt.Fprintf(b, "    payload=%s result=%s error=%q/%q policy=%s trace=%x\n",
		blob(t.Payload), blob(t.Result), t.ErrMessage, t.ErrType, policyOf(t), t.Trace)
	a := &t.Attempt
	fmt.Fprintf(b, "    attempt of %q nonce=%d started=%d deadline=%d beat=%d in %q progress=%s ended=%s\n",
		a.Worker.Name(), a.Nonce, a.StartedAt, a.DeadlineAt, a.BeatBy, a.Limits.String(), blob(a.Progress), a.Ended)
	for _, s := range t.Steps {
		fmt.Fprintf(b, "    step %d at %d grant=%d of %q due=%d %q/%q\n", s.Kind, s.At, s.Grant, s.Worker, s.DueAt, s.Message, s.ErrType)
	}
}

// policyOf shows the policy of a task.
func policyOf(t *taskstate.Task) string {
	p, rules := *t.Policy, taskstate.Rules{}
	if p.Rules != nil {
		rules, p.Rules = *p.Rules, nil
	}
	return fmt.Sprintf("%+v %+v", p, rules)
}

// pollsOf shows polls.
func pollsOf(all ...dispatch.Poll) string {
	var shown []string
	for _, p := range all {
		shown = append(shown, fmt.Sprintf("%s of %s at %s, JSON %v", p.Worker.Name(), p.Domain, p.ReplyTo, p.JSON))
	}
	return strings.Join(shown, "; ")
}

func writeEvent(b *bytes.Buffer, e *taskstate.Event) {
	fmt.Fprintf(b, "  %s %s of %d/%s v%d nonce=%d by %q/%q in %q data=%s error=%q/%q final=%v delay=%d\n",
		e.Kind, e.ID, e.Fence.Position.Seq(), e.Fence.Position.Lane(), e.Fence.Version, e.Fence.Nonce, e.Domain, e.Worker.Name(), e.Limits.String(),
		blob(e.Data), e.Message, e.ErrType, e.NonRetryable, e.DelayMS)
	if e.Poll > 0 || e.Undelivered {
		fmt.Fprintf(b, "    poll=%d undelivered=%v\n", e.Poll, e.Undelivered)
	}
}

func blob(b taskstate.Blob) string {
	return strings.TrimSpace(fmt.Sprintf("%q in %d", b.Data, b.Encoding))
}
