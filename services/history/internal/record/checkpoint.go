package record

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

// Checkpoint reads the stored form.
func Checkpoint(s *logv1.Checkpoint) replica.Checkpoint {
	cp := replica.Checkpoint{
		Floor: s.EventFloor, TimerSeq: s.TimerSeq, ArchiveSeq: s.ArchiveSeq,
		Parked: replica.Levels{Events: s.ParkedEventSeq}, Archived: replica.Levels{Events: s.ArchivedEventSeq},
	}
	for _, l := range s.Lanes {
		if int(l.Lane) < len(cp.Ack) {
			cp.Ack[l.Lane], cp.Read[l.Lane] = l.AckSeq, l.ReadSeq
			cp.Parked.Lanes[l.Lane], cp.Archived.Lanes[l.Lane] = l.ParkedSeq, l.ArchivedSeq
		}
	}
	for _, f := range s.Fences {
		cp.Fences = append(cp.Fences, replica.ShardFence{Shard: f.Shard, Epoch: f.Epoch})
	}
	for _, q := range s.Queues {
		cp.Queues = append(cp.Queues, replica.QueueCursor{
			Queue: queue(q.Lane, q.Domain), Ack: q.AckSeq, Read: q.ReadSeq, Last: q.LastSeq, End: q.EndSeq,
		})
	}
	cp.Parked.Queues, cp.Archived.Queues = levels(s.ParkedQueues), levels(s.ArchivedQueues)
	return cp
}

func queue(lane uint32, domain string) replica.Queue {
	return replica.Queue{Lane: ids.Lane(lane), Domain: domain}
}

func levels(stored []*logv1.QueueLevel) (all []replica.QueueLevel) {
	for _, q := range stored {
		all = append(all, replica.QueueLevel{Queue: queue(q.Lane, q.Domain), Seq: q.Seq})
	}
	return all
}

func storedLevels(all []replica.QueueLevel) (stored []*logv1.QueueLevel) {
	for _, q := range all {
		stored = append(stored, &logv1.QueueLevel{Lane: uint32(q.Lane), Domain: q.Domain, Seq: q.Seq})
	}
	return stored
}

// StoredCheckpoint is the inverse of Checkpoint. Whose it is, and its format, are the caller's to add.
func StoredCheckpoint(cp *replica.Checkpoint) *logv1.Checkpoint {
	s := &logv1.Checkpoint{
		EventFloor: cp.Floor, TimerSeq: cp.TimerSeq, ArchiveSeq: cp.ArchiveSeq,
		ParkedEventSeq: cp.Parked.Events, ArchivedEventSeq: cp.Archived.Events,
	}
	for i := range cp.Ack {
		s.Lanes = append(s.Lanes, &logv1.LaneCursor{
			Lane: uint32(i), AckSeq: cp.Ack[i], ReadSeq: cp.Read[i],
			ParkedSeq: cp.Parked.Lanes[i], ArchivedSeq: cp.Archived.Lanes[i],
		})
	}
	for _, f := range cp.Fences {
		s.Fences = append(s.Fences, &logv1.ShardFence{Shard: f.Shard, Epoch: f.Epoch})
	}
	for _, q := range cp.Queues {
		s.Queues = append(s.Queues, &logv1.QueueCursor{
			Lane: uint32(q.Lane), Domain: q.Domain, AckSeq: q.Ack, ReadSeq: q.Read, LastSeq: q.Last, EndSeq: q.End,
		})
	}
	s.ParkedQueues, s.ArchivedQueues = storedLevels(cp.Parked.Queues), storedLevels(cp.Archived.Queues)
	return s
}
