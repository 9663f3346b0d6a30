package record

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

// Checkpoint reads the stored form.
func Checkpoint(s *logv1.Checkpoint) replica.Checkpoint {
	var cp replica.Checkpoint
	if at := s.Snapshot; at != nil {
		cp.Snapshot = replica.SnapshotRef{Epoch: at.Epoch, Seq: at.Seq, Chunks: int(at.Chunks), Bytes: at.Bytes, Digest: at.Digest, TimerSeq: at.TimerSeq}
	}
	return cp
}

// StoredCheckpoint is the inverse of Checkpoint. The caller adds its owner and its format.
func StoredCheckpoint(cp *replica.Checkpoint) *logv1.Checkpoint {
	s := &logv1.Checkpoint{}
	if at := &cp.Snapshot; at.Seq > 0 {
		s.Snapshot = &logv1.SnapshotRef{Epoch: at.Epoch, Seq: at.Seq, Chunks: uint32(at.Chunks), Bytes: at.Bytes, Digest: at.Digest, TimerSeq: at.TimerSeq}
	}
	return s
}

// Parked adds a batch of the timer store to the tail that a takeover reads.
func Parked(tail *replica.ParkedTail, b *logv1.Batch) {
	if b.Fence {
		tail.Fence(b.Epoch)
	}
	if !tail.Counts(b.Epoch) {
		return
	}
	for _, t := range b.Tasks {
		if id, err := ids.TaskIDFromBytes(t.Id); err == nil {
			tail.Stays[replica.Stay{ID: id, Parkings: t.Parkings}] = true
		}
	}
}

func lanes(stored []*logv1.LaneCursor) (read [ids.Lanes]uint64) {
	for _, l := range stored {
		if int(l.Lane) < len(read) {
			read[l.Lane] = l.ReadSeq
		}
	}
	return read
}

func storedLanes(read [ids.Lanes]uint64) (stored []*logv1.LaneCursor) {
	for i, seq := range read {
		stored = append(stored, &logv1.LaneCursor{Lane: uint32(i), ReadSeq: seq})
	}
	return stored
}

func queues(stored []*logv1.QueueCursor) (all []replica.QueueCursor) {
	for _, q := range stored {
		at := replica.Queue{Lane: ids.Lane(q.Lane), Place: ids.Place(q.Place)}
		all = append(all, replica.QueueCursor{Queue: at, Read: q.ReadSeq, First: q.FirstSeq, Last: q.LastSeq})
	}
	return all
}

func storedQueues(all []replica.QueueCursor) (stored []*logv1.QueueCursor) {
	for _, q := range all {
		stored = append(stored, &logv1.QueueCursor{Lane: uint32(q.Lane), Place: string(q.Place), ReadSeq: q.Read, FirstSeq: q.First, LastSeq: q.Last})
	}
	return stored
}
