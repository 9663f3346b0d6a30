package replica

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Snapshot is the state of a partition as of a turn. It is not changed any more.
type Snapshot struct {
	// Seq is the turn.
	Seq uint64
	// Read is how far each lane was read, Queues the domains that lagged, in order.
	Read   [ids.Lanes]uint64
	Queues []QueueCursor
	// Fences are the newest ones of the matching shards, by shard.
	Fences []dispatch.ShardFence
	// ArchiveSeq and TimerSeq: what this owner had put into the archive and the timer store up to there is not in Tasks any more.
	ArchiveSeq, TimerSeq uint64
	// TimerEpoch is the epoch of the last fence of the timer store up to TimerSeq.
	TimerEpoch uint64
	// Waiting are the commands that waited for their task, in the order of the log.
	Waiting []taskstate.Event
	// Batches are those of which tasks have been admitted, and that may not be over.
	Batches []batch.Count
	// Tasks are all that were in memory, those included that have ended or are on their way to the timer store.
	Tasks []SnapshotTask
}

// SnapshotTask is one task of a snapshot.
type SnapshotTask struct {
	taskstate.Task
	// ArrivedAt is the time of its submit, Unix ms, Index its place in the message.
	ArrivedAt int64
	Index     int32
	// Granted: its running attempt may not have reached its worker.
	Granted *dispatch.Granted
	// Letter is the dead letter that is deleted once the task is in the timer store; its Seq is 0 if there is none.
	Letter Letter
}

// SnapshotRef names a stored snapshot. The zero one is that of a partition without any.
type SnapshotRef struct {
	// Epoch is that of the owner that made it, Seq its turn.
	Epoch, Seq uint64
	// Chunks is how many messages it has, of so many bytes in all, Digest what they contain.
	Chunks int
	Bytes  int64
	Digest []byte
	// TimerSeq is that of the snapshot: a takeover reads the timer store behind it.
	TimerSeq uint64
}

// Start is what a takeover begins with.
type Start struct {
	// Epoch is that of the new owner, whose fence the timer store has.
	Epoch uint64
	// Checkpoint is the one that was claimed, Snapshot the one that it names.
	Checkpoint Checkpoint
	Snapshot   *Snapshot
	// Parked and Archived are what the tails of the other stores hold, behind the snapshot's TimerSeq and ArchiveSeq; TimerSeq and
	// ArchiveSeq are where they end.
	Parked               map[Stay]bool
	Archived             Ends
	TimerSeq, ArchiveSeq uint64
	// ClaimedAt is when the claim was sent, on the clock of Now.Mono.
	ClaimedAt time.Duration
}

func (s *snapshots) stored(ref SnapshotRef) { s.making, s.next, s.size = false, ref, ref.Bytes }

// saved takes in that a checkpoint is saved which names the snapshot of a turn, and tells whether it is the first to do so, and what the log may forget.
func (s *snapshots) saved(seq uint64) (levels Levels, first bool) {
	if s.next.Seq == 0 || s.next.Seq != seq {
		return levels, false
	}
	s.current, s.next = s.next, SnapshotRef{}
	return s.levels, true
}

// named is the snapshot that the next checkpoint names.
func (s *snapshots) named() SnapshotRef {
	if s.next.Seq > 0 {
		return s.next
	}
	return s.current
}

// Saved is when this owner saved a snapshot last, Unix ms, 0 = never, and about how many bytes of the log follow the last one.
func (r *Replica) Saved() (atMS, behind int64) { return r.snapshots.savedAt, r.snapshots.bytes }

// wantsSnapshot tells whether it is time for one: so much of the log has followed the last one that it is quicker to read than that, or
// old enough that it should be forgotten.
func (s step) wantsSnapshot() bool {
	last := &s.snapshots
	if last.making || last.next.Seq > 0 || last.bytes == 0 {
		return false
	}
	return last.bytes >= max(s.cfg.SnapshotBytes, last.size) || s.now.MS-last.at >= s.cfg.SnapshotEveryMS
}

// snapshot copies the state as of the turn that was just applied. Copies of a task share what is not changed in place.
func (s step) snapshot() *Snapshot {
	levels := s.UnreadLevels("")
	out := &Snapshot{
		Seq: s.eventAt, Read: levels.Lanes, Queues: s.Cursors(), Fences: s.Fences(),
		ArchiveSeq: s.archive.last, TimerSeq: s.park.last, TimerEpoch: s.epoch, Tasks: make([]SnapshotTask, 0, s.live),
	}
	out.Waiting = s.locator.Commands()
	out.Batches = s.Members.Since(s.now.MS - batch.LifeMS)
	levels.Events = out.Seq
	for _, e := range s.tasks {
		if !e.left {
			out.Tasks = append(out.Tasks, SnapshotTask{e.Task, e.arrivedAt, e.Index, e.GrantedBy(), Letter{}})
			if len(s.letters) > 0 {
				out.Tasks[len(out.Tasks)-1].Letter = s.letters[e.ID]
			}
		}
	}
	s.snapshots.due, s.snapshots.making, s.snapshots.levels = false, true, levels
	s.snapshots.bytes, s.snapshots.at = 0, s.now.MS
	return out
}

// exempt lets the tasks that run take no room any more: they have run since the snapshot before, and how many do is up to the workers.
func (r *Replica) exempt() {
	for _, e := range r.tasks {
		if e.State == taskstate.Running && !e.left {
			e.exempt = true
			r.charge(e)
		}
	}
}

// load begins with a snapshot. Tasks that the other stores hold already leave at once.
func (r *Replica) load(start *Start) {
	snap := start.Snapshot
	r.eventAt = snap.Seq
	r.Load(snap.Read, snap.Queues)
	for i := range snap.Waiting {
		r.locator.WaitAgain(&snap.Waiting[i])
	}
	r.snapshots.current = start.Checkpoint.Snapshot
	r.epoch = start.Epoch
	r.park.last, r.archive.last = max(snap.TimerSeq, start.TimerSeq), max(snap.ArchiveSeq, start.ArchiveSeq)
	for _, f := range snap.Fences {
		r.Raise(f)
	}
	for _, b := range snap.Batches {
		r.Members[b.Name] = b.Tally
	}
	for i := range snap.Tasks {
		t := &snap.Tasks[i]
		e := &Entry{Task: t.Task, arrivedAt: t.ArrivedAt, exempt: t.State == taskstate.Running}
		e.Index = t.Index
		e.shared = e.Position.Shared()
		r.tasks[e.ID] = e
		if t.Letter.Seq > 0 {
			r.letters[e.ID] = t.Letter
		}
		r.live++
		r.enqueue(e)
		r.enterLine(e)
		r.GrantedTo(&e.Entry, uint32(e.Attempt.Shard))
		r.Recount(&e.Entry)
		r.charge(e)
		r.wake.Set(e, e.WakeAt())
		r.GrantedBefore(&e.Entry, t.Granted)
		if e.State.Finished() || e.State == taskstate.Waiting {
			r.leaveIfStored(e)
		}
	}
}

// leaveIfStored lets e go, which has ended or is parked, if the tail of the other store has it: a takeover must not hold all that has left
// since the snapshot.
func (r *Replica) leaveIfStored(e *Entry) bool {
	stay := Stay{e.ID, e.Parkings}
	switch {
	case r.replay == nil:
		return false
	case e.State.Finished() && r.replay.archived.take(e):
	case e.State == taskstate.Waiting && r.replay.parked[stay]:
		delete(r.replay.parked, stay)
	default:
		return false
	}
	r.leave(e)
	return true
}

// Check tells whether the stores are at least as long as when the snapshot was made. One
// that is not has lost what was accepted: it was restored from a backup, or its disk lied.
func (s *Start) Check(log, timer, archive uint64) error {
	read := s.Snapshot.Seq
	for _, seq := range s.Snapshot.Read {
		read = max(read, seq)
	}
	for _, q := range s.Snapshot.Queues {
		read = max(read, q.Read, q.Last)
	}
	for _, store := range [...]struct {
		name      string
		ends, had uint64
	}{{"log", log, read}, {"timer store", timer, s.Snapshot.TimerSeq}, {"archive", archive, s.Snapshot.ArchiveSeq}} {
		if store.ends < store.had {
			return fmt.Errorf("the %s ends at %d, but it was seen up to %d: it was restored from an older copy, "+
				"or has lost its tail; restore all stores of this partition together, or remove its checkpoint to accept the loss",
				store.name, store.ends, store.had)
		}
	}
	return nil
}

// Checkpoint tells where the replica stands. Until a takeover is over that is where
// it began: a save then only keeps the lease.
func (r *Replica) Checkpoint() Checkpoint {
	if r.replay != nil {
		return r.replay.base
	}
	return Checkpoint{Snapshot: r.snapshots.named()}
}

// EventAt is the last event that was decided.
func (r *Replica) EventAt() uint64 { return r.eventAt }
