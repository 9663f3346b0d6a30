package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

const (
	// chunkBytes is how large a chunk of a snapshot gets before the next one begins; one with a large task may be larger.
	chunkBytes = 400 << 10
	// chunkTasks, chunkBatches and chunkCommands are the fields of SnapshotChunk that have its tasks, batches and commands.
	chunkTasks, chunkBatches, chunkCommands = 3, 4, 5
)

// Snapshot encodes s in chunks. The reference says how many there are, and what they contain.
func (e *Encoder) Snapshot(s *replica.Snapshot, version uint32, epoch uint64) (chunks [][]byte, ref replica.SnapshotRef) {
	head := &logv1.SnapshotHead{
		Seq: s.Seq, Lanes: storedLanes(s.Read), Queues: storedQueues(s.Queues),
		TimerSeq: s.TimerSeq, ArchiveSeq: s.ArchiveSeq, TimerEpoch: s.TimerEpoch,
	}
	for _, f := range s.Fences {
		head.Fences = append(head.Fences, &logv1.ShardFence{Shard: f.Shard, Epoch: f.Epoch})
	}
	begin := func(head *logv1.SnapshotHead) []byte {
		chunk, err := (&logv1.SnapshotChunk{LogVersion: version, Head: head}).MarshalVT()
		if err != nil {
			panic("record: " + err.Error()) // every field is of our making
		}
		return chunk
	}
	chunk := begin(head)
	next := func() []byte {
		if len(chunk) > chunkBytes {
			chunks, chunk = append(chunks, chunk), begin(nil)
		}
		return chunk
	}
	for i := range s.Tasks {
		chunk = e.appendSnapshotTask(next(), &s.Tasks[i])
	}
	for _, b := range s.Batches {
		chunk = appendMessage(next(), chunkBatches, &logv1.BatchCount{Domain: b.Domain, BatchId: b.ID, MadeMs: b.Made, Tasks: b.Tasks, Ends: StoredEnds(b.Ends)})
	}
	for i := range s.Waiting {
		chunk = appendMessage(next(), chunkCommands, storedCommand(&s.Waiting[i]))
	}
	chunks = append(chunks, chunk)
	ref = replica.SnapshotRef{Epoch: epoch, Seq: s.Seq, Chunks: len(chunks), TimerSeq: s.TimerSeq}
	ref.Digest, ref.Bytes = digest(chunks)
	return chunks, ref
}

// StoredEnds and Ends turn ends into their record and back.
func StoredEnds(e batch.Ends) *logv1.BatchEnds {
	return &logv1.BatchEnds{Completed: e.Completed, Dead: e.Dead, Cancelled: e.Cancelled, Expired: e.Expired}
}

// Ends are those of a record; nil = none.
func Ends(e *logv1.BatchEnds) batch.Ends {
	return batch.Ends{Completed: e.GetCompleted(), Dead: e.GetDead(), Cancelled: e.GetCancelled(), Expired: e.GetExpired()}
}

func digest(chunks [][]byte) (sum []byte, bytes int64) {
	h := sha256.New()
	for _, c := range chunks {
		h.Write(c)
		bytes += int64(len(c))
	}
	return h.Sum(nil), bytes
}

func (e *Encoder) appendSnapshotTask(chunk []byte, t *replica.SnapshotTask) []byte {
	m := logv1.SnapshotTask{
		Task: e.Record(&t.Task), ArrivedAtMs: t.ArrivedAt, Index: uint32(t.Index), Shard: uint32(t.Attempt.Shard),
		Letter: t.Letter.Seq, LetterTasklist: t.Letter.Tasklist, Before: uint64(t.Before),
	}
	if g := t.Granted; g != nil {
		m.Granted = &logv1.Granted{Shard: g.Shard, ShardEpoch: g.Epoch, RequestId: g.Request}
		if g.Poll != nil {
			m.Granted.Poll = &logv1.PollRef{Domain: g.Poll.Domain, Worker: g.Poll.Worker.Name(), WorkerId: g.Poll.Worker.ID(), ReplyTo: g.Poll.ReplyTo, Json: g.Poll.JSON, MaxTasks: g.Poll.Max}
		}
	}
	return appendMessage(chunk, chunkTasks, &m)
}

// ErrTorn is wrapped where the chunks of a snapshot are not those that its reference names.
var ErrTorn = errors.New("the snapshot is not the one that the checkpoint names")

// Snapshot decodes the chunks that a reference names.
func (d *Decoder) Snapshot(chunks [][]byte, ref *replica.SnapshotRef) (*replica.Snapshot, error) {
	if sum, bytes := digest(chunks); len(chunks) != ref.Chunks || bytes != ref.Bytes || string(sum) != string(ref.Digest) {
		return nil, fmt.Errorf("%w: %d chunks with %d bytes, want %d with %d", ErrTorn, len(chunks), bytes, ref.Chunks, ref.Bytes)
	}
	out := &replica.Snapshot{}
	for i, data := range chunks {
		var c logv1.SnapshotChunk
		if err := c.UnmarshalVTUnsafe(data); err != nil {
			return nil, fmt.Errorf("chunk %d of a snapshot: %w", i, err)
		}
		if err := logversion.Check(c.LogVersion); err != nil {
			return nil, fmt.Errorf("chunk %d of a snapshot: %w", i, err)
		}
		if i == 0 {
			d.snapshotHead(c.Head, out)
		}
		for _, stored := range c.Tasks {
			t, err := d.snapshotTask(stored)
			if err != nil {
				return nil, fmt.Errorf("chunk %d of a snapshot: %w", i, err)
			}
			out.Tasks = append(out.Tasks, t)
		}
		for _, b := range c.Batches {
			name := batch.Name{Domain: d.intern(b.Domain), ID: d.intern(b.BatchId), Made: b.MadeMs}
			out.Batches = append(out.Batches, batch.Count{Name: name, Tally: batch.Tally{Tasks: b.Tasks, Ends: Ends(b.Ends)}})
		}
		for _, stored := range c.Commands {
			ev, err := d.command(stored)
			if err != nil {
				return nil, fmt.Errorf("chunk %d of a snapshot: %w", i, err)
			}
			out.Waiting = append(out.Waiting, ev)
		}
	}
	return out, nil
}

func (d *Decoder) snapshotHead(h *logv1.SnapshotHead, out *replica.Snapshot) {
	out.Seq, out.Read, out.Queues = h.GetSeq(), lanes(h.GetLanes()), queues(h.GetQueues())
	for i := range out.Queues {
		out.Queues[i].Place = ids.Place(d.intern(string(out.Queues[i].Place)))
	}
	out.TimerSeq, out.ArchiveSeq, out.TimerEpoch = h.GetTimerSeq(), h.GetArchiveSeq(), h.GetTimerEpoch()
	for _, f := range h.GetFences() {
		out.Fences = append(out.Fences, dispatch.ShardFence{Shard: f.Shard, Epoch: f.Epoch})
	}
}

func (d *Decoder) snapshotTask(stored *logv1.SnapshotTask) (t replica.SnapshotTask, err error) {
	e, err := d.Entry(stored.GetTask())
	if err != nil {
		return t, err
	}
	t = replica.SnapshotTask{Task: e.Task, ArrivedAt: stored.ArrivedAtMs, Index: int32(min(stored.Index, math.MaxInt32))}
	t.Before, t.Attempt.Shard = ids.Position(stored.Before), uint16(min(stored.Shard, math.MaxUint16))
	if stored.Letter > 0 {
		t.Letter = replica.Letter{Domain: t.Domain, Tasklist: d.intern(stored.LetterTasklist), ID: t.ID, Seq: stored.Letter}
	}
	if g := stored.Granted; g != nil && t.State == taskstate.Running {
		t.Granted = &dispatch.Granted{Shard: g.Shard, Epoch: g.ShardEpoch, Request: g.RequestId}
		if g.Poll != nil {
			poll := d.poll(g.Poll, 0)
			t.Granted.Poll = &poll
		}
	}
	return t, nil
}
