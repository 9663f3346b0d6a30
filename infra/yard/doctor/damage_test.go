package doctor_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// damage is what is done to a patient, and what is found then.
type damage struct {
	name string
	do   func(p *patient)
	want []doctor.Code
}

var log, timer, archive = topology.HistoryStream(0), topology.TimerStream(0), topology.ArchiveStream(0)

func damagedStays() []damage {
	return []damage{
		{"none", func(*patient) {}, nil},
		{"the end of a task is lost", func(p *patient) {
			end, _ := p.typed(archive, archived, "slim")
			p.rewrite(end[0], "slim", func(*logv1.Record) bool { return false })
		}, []doctor.Code{doctor.TaskLost}},
		{"a task that was fired is lost", func(p *patient) {
			p.fire(99)
		}, []doctor.Code{doctor.FiredAndLost}},
		{"a task that was fired early is lost", func(p *patient) {
			seq := p.early()
			p.put(topology.Fired(0), testkit.Encoded(p.t, &logv1.Cursor{Epoch: 1, BaseDueMs: time.Now().UnixMilli() + 1, BaseSeq: seq}))
		}, []doctor.Code{doctor.FiredAndLost}},
		{"a task of a domain that is apart was fired early and is lost", func(p *patient) {
			seq := p.early()
			apart := &logv1.Cursor{Domain: domain, BaseDueMs: time.Now().UnixMilli() + 1, BaseSeq: seq}
			p.put(topology.Fired(0), testkit.Encoded(p.t, &logv1.Cursor{Epoch: 1, Apart: []*logv1.Cursor{apart}}))
		}, []doctor.Code{doctor.FiredAndLost}},
		{"a domain that is apart has not fired what others have", func(p *patient) {
			seq := p.early()
			due := time.Now().UnixMilli() + 1
			apart := &logv1.Cursor{Domain: domain, BaseDueMs: due, BaseSeq: seq - 1} // what was fired before
			p.put(topology.Fired(0), testkit.Encoded(p.t, &logv1.Cursor{Epoch: 1, BaseDueMs: due, BaseSeq: seq, Apart: []*logv1.Cursor{apart}}))
		}, []doctor.Code{doctor.Overdue}},
		{"a task does not fire early", func(p *patient) { p.early() }, []doctor.Code{doctor.Overdue}},
		{"a stay that was stored twice is fired once", func(p *patient) {
			r := p.fire(99)
			data := testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{r}})
			p.put(topology.Submit(0, ids.LaneFirst, domain, list), data)
			p.put(topology.Timer(0, topology.TimerBucket(r.DueAtMs)), data)
		}, nil},
		{"a task is fired twice", func(p *patient) {
			fired, records := p.typed(log, submits, "late")
			i := slices.IndexFunc(records, func(r *logv1.Record) bool { return r.Parkings > 0 })
			p.put(fired[i].subject, fired[i].data)
		}, []doctor.Code{doctor.FiredTwice}},
		{"a task is not fired", func(p *patient) {
			_, records := p.typed(timer, waiting, "waits")
			r := records[0]
			r.Parkings++
			r.DueAtMs = time.Now().UnixMilli()
			p.put(topology.Timer(0, topology.TimerBucket(r.DueAtMs)), testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{r}}))
		}, []doctor.Code{doctor.Overdue}},
		{"a task that has ended waits", func(p *patient) {
			_, records := p.typed(archive, archived, "slim")
			r := records[0]
			r.DueAtMs = time.Now().Add(time.Hour).UnixMilli()
			p.put(topology.Timer(0, topology.TimerBucket(r.DueAtMs)), testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{r}}))
		}, []doctor.Code{doctor.TwoHomes}},
		{"a replaced owner parks a task that has ended", func(p *patient) {
			_, records := p.typed(archive, archived, "slim")
			r := records[0]
			r.DueAtMs = time.Now().Add(time.Hour).UnixMilli()
			p.put(topology.TimerFence(0), testkit.Encoded(p.t, &logv1.Batch{Fence: true, Epoch: 1 << 40}))
			p.put(topology.Timer(0, topology.TimerBucket(r.DueAtMs)), testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{r}, Epoch: 7}))
		}, nil},
	}
}

func damagedEnds() []damage {
	return []damage{
		{"another end", func(p *patient) {
			ends, records := p.typed(archive, archived, "slim")
			r := records[0]
			r.Result = []byte(`"other"`)
			p.put(ends[0].subject, testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{r}}))
		}, []doctor.Code{doctor.EndedTwice}},
		{"the same end again", func(p *patient) {
			ends, records := p.typed(archive, archived, "slim")
			p.put(ends[0].subject, testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{records[0]}}))
		}, nil},
		{"an attempt that began twice", func(p *patient) {
			end, records := p.typed(archive, archived, "slim")
			p.rewrite(end[0], "slim", func(r *logv1.Record) bool {
				if string(r.Id) == string(records[0].Id) {
					i := slices.IndexFunc(r.Steps, func(s *logv1.Step) bool { return s.Grant == 1 })
					r.Steps = slices.Insert(r.Steps, i, r.Steps[i])
				}
				return true
			})
		}, []doctor.Code{doctor.GrantedTwice}},
		{"a page of the index is lost", func(p *patient) {
			all := p.messages(archive)
			i := slices.IndexFunc(all, func(m message) bool {
				return m.subject != topology.ArchiveIndexed(0) && !archived(m.subject)
			})
			p.remove(archive, all[i].seq)
		}, []doctor.Code{doctor.ArchiveGap}},
		{"a page that leads to others is lost", func(p *patient) {
			all := p.messages(archive)
			i := slices.IndexFunc(all, func(m message) bool {
				return strings.HasPrefix(m.subject, "yard.archive.0.index.") && strings.Count(m.subject, ".") == topology.ArchivePageDots+1
			})
			around := all[i].subject[:strings.LastIndexByte(all[i].subject, '.')]
			p.remove(archive, all[slices.IndexFunc(all, func(m message) bool { return m.subject == around })].seq)
		}, []doctor.Code{doctor.ArchiveGap}},
	}
}

func damagedLetters() []damage {
	return []damage{
		{"a dead letter is lost", func(p *patient) {
			ends, records := p.typed(archive, archived, "bad")
			r := records[0]
			id := ids.NewTaskID(time.Now(), 0, 99)
			r.Id, r.FinishedAtMs = id[:], time.Now().Add(time.Hour).UnixMilli()
			p.put(ends[0].subject, testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{r}}))
		}, []doctor.Code{doctor.EndWithoutDeadLetter}},
		{"dead letters are purged", func(p *patient) {
			testkit.NoError(p.t, p.stream(topology.DeadLetterStream).Purge(p.t.Context()))
		}, nil},
		{"a dead letter is redriven", func(p *patient) {
			p.redrive(func(letter message) { p.remove(topology.DeadLetterStream, letter.seq) })
		}, nil},
		{"a dead letter of a task that never ended", func(p *patient) {
			p.put(topology.Dead(domain, list, ids.NewTaskID(time.Now(), 0, 99)), []byte("a letter"))
		}, []doctor.Code{doctor.DeadLetterWithoutEnd}},
	}
}

// redrive brings a dead task back, whose letter is deleted.
func (p *patient) redrive(drop func(letter message)) {
	letters := p.messages(topology.DeadLetterStream)
	_, records := p.typed(archive, archived, "bad")
	r := records[0]
	for _, l := range letters {
		if strings.HasSuffix(l.subject, ids.TaskID(r.Id).String()) {
			drop(l)
		}
	}
	r.Parkings++
	r.DueAtMs = time.Now().Add(time.Hour).UnixMilli()
	p.put(topology.Timer(0, topology.TimerBucket(r.DueAtMs)), testkit.Encoded(p.t, &logv1.Batch{Tasks: []*logv1.Record{r}}))
}

func damagedKeys() []damage {
	return []damage{
		{"a word of a task that never was", func(p *patient) { p.say("never", ids.NewTaskID(time.Now(), 0, 99), 0) }, []doctor.Code{doctor.KeyVoid}},
		{"a word of a task that has ended", func(p *patient) {
			_, records := p.typed(archive, archived, "slim")
			p.say("ended", ids.TaskID(records[0].Id), 0)
		}, []doctor.Code{doctor.KeyVoid}},
		{"the key of a task that waits is another's", func(p *patient) {
			_, records := p.typed(timer, waiting, "waits")
			i := slices.IndexFunc(records, func(r *logv1.Record) bool { return r.Unique == nil })
			p.say("waits", ids.TaskID(records[i].Id), 0)
		}, []doctor.Code{doctor.KeyMissing}},
	}
}

func damagedRecords() []damage {
	return []damage{
		{"bytes in the log", func(p *patient) { p.put(topology.Event(0), []byte{0xff}) }, []doctor.Code{doctor.Unreadable}},
		{"a record of the next version", func(p *patient) {
			p.put(topology.SubmitShared(0, 2), testkit.Encoded(p.t, &logv1.Batch{LogVersion: 1000}))
		}, []doctor.Code{doctor.NewerRecord}},
		{"the archive lost its tail", func(p *patient) {
			data := testkit.Encoded(p.t, &logv1.SnapshotChunk{Head: &logv1.SnapshotHead{ArchiveSeq: 1 << 40}})
			p.put(topology.Snapshot(0, 1<<30, 1, 0), data)
			digest := sha256.Sum256(data)
			named := &logv1.SnapshotRef{Epoch: 1 << 30, Seq: 1, Chunks: 1, Bytes: int64(len(data)), Digest: digest[:]}
			p.checkpoint(func(cp *logv1.Checkpoint) { cp.Snapshot = named })
		}, []doctor.Code{doctor.StoreBehind}},
		{"the end of a task is in quarantine", func(p *patient) {
			end, _ := p.typed(archive, archived, "slim")
			p.rewrite(end[0], "slim", func(*logv1.Record) bool { return false })
			p.quarantine(&logv1.Quarantined{Kind: logv1.QuarantineKind_QUARANTINE_KIND_UNWRITABLE, Service: "history", TargetSubject: end[0].subject, Data: end[0].data})
		}, []doctor.Code{doctor.Quarantined}},
		{"an item in quarantine", func(p *patient) {
			p.quarantine(&logv1.Quarantined{
				Kind: logv1.QuarantineKind_QUARANTINE_KIND_UNREADABLE, Service: "timer", Reason: "bad", OriginStream: timer, OriginSubject: topology.Timer(0, 7), OriginSeq: 3, Data: []byte("x"),
			})
		}, []doctor.Code{doctor.Quarantined}},
	}
}

func damagedSnapshots(t *testing.T) []damage {
	chunk := func(at uint64) string {
		return string(testkit.Encoded(t, &logv1.SnapshotChunk{LogVersion: 1, Head: &logv1.SnapshotHead{Seq: at}}))
	}
	chunks := []string{chunk(1), chunk(2), chunk(3)}
	all := strings.Join(chunks, "")
	digest := sha256.Sum256([]byte(all))
	named := &logv1.SnapshotRef{Epoch: 1 << 40, Seq: 7, Chunks: 3, Bytes: int64(len(all)), Digest: digest[:]}
	save := func(p *patient, change func(*logv1.SnapshotRef, []string)) {
		ref, stored := named.CloneVT(), slices.Clone(chunks)
		change(ref, stored)
		for i, chunk := range stored {
			if chunk != "" {
				p.put(topology.Snapshot(0, 1<<40, 7, i), []byte(chunk))
			}
		}
		p.checkpoint(func(cp *logv1.Checkpoint) { cp.Snapshot = ref })
	}
	return []damage{
		{"a snapshot", func(p *patient) { save(p, func(*logv1.SnapshotRef, []string) {}) }, nil},
		{"a chunk of a snapshot is lost", func(p *patient) {
			save(p, func(_ *logv1.SnapshotRef, chunks []string) { chunks[1] = "" })
		}, []doctor.Code{doctor.SnapshotMissing}},
		{"a chunk of a snapshot is another one", func(p *patient) {
			save(p, func(_ *logv1.SnapshotRef, chunks []string) { chunks[1] = chunk(4) })
		}, []doctor.Code{doctor.SnapshotMissing}},
		{"a snapshot is shorter than it was", func(p *patient) {
			save(p, func(ref *logv1.SnapshotRef, _ []string) { ref.Bytes++ })
		}, []doctor.Code{doctor.SnapshotMissing}},
		{"a snapshot that no checkpoint names is torn", func(p *patient) {
			p.put(topology.Snapshot(0, 1<<40, 8, 1), []byte(chunks[1]))
		}, nil},
	}
}

func damagedBatches() []damage {
	home := func(p *patient, change func(*logv1.BatchHome)) {
		m := p.lastOf(log, topology.BatchHomeAny(0))
		var h logv1.BatchHome
		testkit.NoError(p.t, h.UnmarshalVT(m.Data))
		change(&h)
		p.putRecord(topology.BatchHome(0, domain, h.BatchId), &h)
	}
	other := func(p *patient, change func(*logv1.BatchHome)) {
		home(p, func(h *logv1.BatchHome) {
			h.BatchId, h.EndedAtMs, h.Ends, h.Tasks, h.CallbackTaskId = "other", 0, nil, 0, nil
			change(h)
		})
	}
	return []damage{
		{"a batch was over too early", func(p *patient) { home(p, func(h *logv1.BatchHome) { h.Tasks++ }) }, []doctor.Code{doctor.BatchMiscounted}},
		{"a batch has no callback", func(p *patient) { home(p, func(h *logv1.BatchHome) { h.CallbackTaskId = nil }) }, []doctor.Code{doctor.CallbackMissing}},
		{"the callback of a batch is nowhere", func(p *patient) {
			id := ids.NewTaskID(time.Now(), 0, 99)
			home(p, func(h *logv1.BatchHome) { h.CallbackTaskId = id[:] })
		}, []doctor.Code{doctor.CallbackMissing}},
		{"a batch expired", func(p *patient) {
			home(p, func(h *logv1.BatchHome) { h.CallbackTaskId, h.Expired, h.Tasks = nil, true, 7 })
		}, nil},
		{"an open batch", func(p *patient) { other(p, func(h *logv1.BatchHome) { h.ClosedAtMs = 0 }) }, nil},
		{"a batch was just closed", func(p *patient) { other(p, func(h *logv1.BatchHome) { h.ClosedAtMs = time.Now().UnixMilli() }) }, nil},
		{"a batch does not expire", func(p *patient) {
			other(p, func(h *logv1.BatchHome) { h.ClosedAtMs, h.ExpiresAtMs = 0, hourAgoMs() })
		}, []doctor.Code{doctor.BatchStuck}},
		{"a batch of the next version", func(p *patient) { other(p, func(h *logv1.BatchHome) { h.LogVersion = 1000 }) }, []doctor.Code{doctor.NewerRecord}},
	}
}

func damagedSchedules() []damage {
	home := func(p *patient, upTo time.Duration, change func(*yardv1.Schedule)) {
		s := &yardv1.Schedule{Name: "report", Cron: []string{"* * * * *"}, TimeZone: "Europe/Berlin"}
		change(s)
		data, err := s.MarshalVT()
		testkit.NoError(p.t, err)
		p.putRecord(topology.ScheduleHome(0, domain, "report"), &logv1.ScheduleHome{LogVersion: 1, Name: "report", Schedule: data, DecidedUpToMs: time.Now().Add(-upTo).UnixMilli()})
	}
	return []damage{
		{"a schedule runs", func(p *patient) { home(p, time.Minute, func(*yardv1.Schedule) {}) }, nil},
		{"a schedule does not run", func(p *patient) { home(p, time.Hour, func(*yardv1.Schedule) {}) }, []doctor.Code{doctor.ScheduleLate}},
		{"a schedule is paused", func(p *patient) { home(p, time.Hour, func(s *yardv1.Schedule) { s.Paused = true }) }, nil},
		{"a schedule has no times left", func(p *patient) { home(p, time.Hour, func(s *yardv1.Schedule) { s.EndAtMs = hourAgoMs() }) }, nil},
		{"a schedule of an unknown time zone", func(p *patient) {
			home(p, time.Minute, func(s *yardv1.Schedule) { s.TimeZone = "Europe/Nowhere" })
		}, []doctor.Code{doctor.ScheduleBroken}},
	}
}

func hourAgoMs() int64 { return time.Now().Add(-time.Hour).UnixMilli() }

func damagedClusters() []damage {
	return []damage{
		{"no timer", func(p *patient) { p.member("timer", ownership.Announcement{LogVersion: 1}) }, []doctor.Code{doctor.NoOwner}},
		{"a partition was given up", func(p *patient) {
			p.member("history", ownership.Announcement{LogVersion: 1, Stopped: []int{0}})
		}, []doctor.Code{doctor.NoOwner, doctor.PartitionStopped}},
		{"a stream is gone", func(p *patient) {
			testkit.NoError(p.t, p.js.DeleteStream(p.t.Context(), topology.MatchingStream(0)))
		}, []doctor.Code{doctor.StreamMissing}},
		{"a stream has other settings", func(p *patient) {
			cfg := p.stream(timer).CachedInfo().Config
			cfg.MaxMsgs, cfg.Duplicates = 1_000_000, time.Minute
			testkit.NoError(p.t, testkit.Err(p.js.UpdateStream(p.t.Context(), cfg)))
		}, []doctor.Code{doctor.StreamDiffers}},
		{"a stream of a partition that is none", func(p *patient) {
			testkit.NoError(p.t, testkit.Err(p.js.CreateStream(p.t.Context(), jetstream.StreamConfig{Name: topology.HistoryStream(9), Subjects: []string{topology.HistoryAny(9)}})))
		}, []doctor.Code{doctor.StreamOrphan}},
		{"a consumer of another program", func(p *patient) {
			testkit.NoError(p.t, testkit.Err(p.stream(archive).CreateConsumer(p.t.Context(), jetstream.ConsumerConfig{Durable: "report"})))
		}, []doctor.Code{doctor.ConsumerOrphan}},
	}
}

// TestEachDamageIsFound: exactly the finding of the damage, and none without any.
func TestEachDamageIsFound(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "damages a system of its own in many ways")
	dir := ward(t)
	for _, d := range slices.Concat(damagedStays(), damagedEnds(), damagedLetters(), damagedKeys(), damagedRecords(), damagedSnapshots(t), damagedBatches(), damagedSchedules(), damagedClusters()) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p := admit(t, dir)
			d.do(p)
			for _, opts := range []doctor.Options{{}, {TasksMax: 25}} { // of which the second needs many passes
				report := p.examine(opts)
				if got := slices.Compact(codesOf(report)); !slices.Equal(got, d.want) {
					t.Errorf("it finds %v, want %v:\n%+v", got, d.want, report.Findings)
				}
				if n := report.Scanned.Archived; n < 49 && d.want == nil {
					t.Errorf("it scanned %d records of the archive", n)
				}
			}
		})
	}
}

// TestRepairs: what is repaired is not found again, and what is not repaired says why.
func TestRepairs(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "damages a system of its own in many ways")
	p := admit(t, ward(t))
	p.say("never", ids.NewTaskID(time.Now(), 0, 99), 0)
	testkit.NoError(t, testkit.Err(p.stream(topology.ArchiveStream(0)).CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "report"})))
	report := p.examine(doctor.Options{})
	if got := codesOf(report); !slices.Equal(got, []doctor.Code{doctor.KeyVoid, doctor.ConsumerOrphan}) || report.Clean() {
		t.Fatalf("it finds %v", got)
	}
	report.Repair(t.Context())
	if !report.Clean() {
		t.Errorf("not all is repaired: %+v", report.Findings)
	}
	m := last(t, p.js, topology.HistoryStream(0), topology.UniqueKey(0, domain, "never"))
	var w logv1.UniqueKey
	if err := w.UnmarshalVT(m.Data); err != nil || w.FreeAtMs == 0 || m.Header.Get(jetstream.MsgTTLHeader) == "" {
		t.Errorf("the key is not free for good: %v %v %v", &w, m.Header, err)
	}
	if report := p.examine(doctor.Options{}); !report.Clean() {
		t.Errorf("it finds again %+v", report.Findings)
	}
	// A word that is not the last one any more is left alone.
	first := p.say("again", ids.NewTaskID(time.Now(), 0, 98), 0)
	report = p.examine(doctor.Options{})
	second := p.say("again", ids.NewTaskID(time.Now(), 0, 97), 0)
	report.Repair(t.Context())
	if m := last(t, p.js, topology.HistoryStream(0), topology.UniqueKey(0, domain, "again")); report.Clean() || m.Sequence != second || report.Findings[0].RepairError == "" {
		t.Errorf("after %d and %d the last word is #%d; the findings are %+v", first, second, m.Sequence, report.Findings)
	}
}
