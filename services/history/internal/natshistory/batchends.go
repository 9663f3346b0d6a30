package natshistory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

const (
	// batchesPerWrite bounds the batches of one write of the archive: each is a message of an atomic batch more.
	batchesPerWrite = 256
	// batchesKnown bounds the documents of batches that a writer remembers.
	batchesKnown = 4096
	// filedPerMsg is how many tasks one message names that are counted, filedPerWrite bounds such messages of one write.
	filedPerMsg, filedPerWrite = 8192, 50
)

// batchEnds counts how tasks of batches ended, in the writes that file them. Its counts hold as long as no one else writes to the archive: the
// writer forgets it together with the archive's tail.
type batchEnds map[batch.Name]batch.Ends

// fit is how many of tasks go into one write.
func (b batchEnds) fit(tasks []*taskstate.Task) int {
	var seen map[batch.Name]bool
	for i, t := range tasks[:min(len(tasks), filedPerMsg*filedPerWrite)] {
		if t.Batch() == nil {
			continue
		}
		if seen == nil {
			seen = make(map[batch.Name]bool)
		}
		seen[batch.NameOf(t)] = true
		if len(seen) > batchesPerWrite {
			return i
		}
	}
	return min(len(tasks), filedPerMsg*filedPerWrite)
}

func inBatches(tasks []*taskstate.Task) bool {
	return slices.ContainsFunc(tasks, func(t *taskstate.Task) bool { return t.Batch() != nil })
}

// raise are the counts of the batches of some tasks once these are filed; nil = they have none.
func (b batchEnds) raise(ctx context.Context, tasks []*taskstate.Task, read func(context.Context, batch.Name) (batch.Ends, error)) (raised batchEnds, err error) {
	for _, t := range tasks {
		if t.Batch() == nil {
			continue
		}
		name := batch.NameOf(t)
		ends, known := raised[name]
		if !known {
			if ends, known = b[name]; !known {
				if ends, err = read(ctx, name); err != nil {
					return nil, err
				}
			}
		}
		ends.Add(t)
		if raised == nil {
			raised = make(batchEnds)
		}
		raised[name] = ends
	}
	return raised, nil
}

// learn takes in what is stored.
func (b *batchEnds) learn(stored batchEnds) {
	if len(stored) == 0 {
		return
	}
	if *b == nil || len(*b) > batchesKnown {
		*b = make(batchEnds, len(stored))
	}
	for name, ends := range stored {
		(*b)[name] = ends
	}
}

// messages are what is stored of the counts.
func (b batchEnds) messages(c *Config, msgs []natslog.Msg) ([]natslog.Msg, error) {
	for name, ends := range b {
		data, err := (&logv1.BatchEnds{
			BatchId: name.ID, LogVersion: c.LogVersion(),
			Completed: ends.Completed, Dead: ends.Dead, Cancelled: ends.Cancelled, Expired: ends.Expired,
		}).MarshalVT()
		if err != nil {
			return nil, fmt.Errorf("how tasks of a batch ended: %w", err)
		}
		msgs = append(msgs, natslog.Msg{Subject: topology.BatchEnds(c.Partition, name.Domain, name.ID, name.Made), Data: data}.InPlace(topology.BatchLifeMax))
	}
	return msgs, nil
}

// readEnds reads how tasks of a batch in the archive of partition p ended.
func (c Config) readEnds(ctx context.Context, p int, name batch.Name) (batch.Ends, error) {
	m, err := natslog.LastForSubject(ctx, c.JetStream, topology.ArchiveStream(p), topology.BatchEnds(p, name.Domain, name.ID, name.Made))
	if err != nil || m == nil {
		return batch.Ends{}, err
	}
	var said logv1.BatchEnds
	if err := said.UnmarshalVT(m.Data); err != nil {
		return batch.Ends{}, fmt.Errorf("message %d of the archive does not count the tasks of a batch: %w", m.Seq, err)
	}
	if err := logversion.Check(said.LogVersion); err != nil {
		return batch.Ends{}, fmt.Errorf("message %d of the archive: %w", m.Seq, err)
	}
	return batch.Ends{Completed: said.Completed, Dead: said.Dead, Cancelled: said.Cancelled, Expired: said.Expired}, nil
}

// countBatches has the archive count the tasks of batches in the messages that file them. The hint tells that more of them have ended.
func (a *Archive) countBatches(ctx context.Context, tasks []*taskstate.Task, msgs []natslog.Msg) (raised batchEnds, _ []natslog.Msg, err error) {
	raised, err = a.ends.raise(ctx, tasks, func(ctx context.Context, name batch.Name) (batch.Ends, error) {
		return a.cfg.readEnds(ctx, a.cfg.Partition, name)
	})
	if err != nil || raised == nil {
		return nil, msgs, err
	}
	if msgs, err = raised.messages(&a.cfg, msgs); err == nil {
		msgs, err = a.nameFiled(tasks, msgs)
	}
	return raised, msgs, err
}

// nameFiled has the archive name the tasks of batches that it may forget before the next owner has come: one that does not find them ends them again, and
// counts them again.
func (a *Archive) nameFiled(tasks []*taskstate.Task, msgs []natslog.Msg) ([]natslog.Msg, error) {
	var named []*logv1.Record
	for _, t := range tasks {
		if t.Batch() != nil && a.retention(t.Domain) < topology.BatchFiledKept {
			named = append(named, &logv1.Record{Id: t.ID[:], Parkings: t.Parkings})
		}
	}
	for some := range slices.Chunk(named, filedPerMsg) {
		data, err := (&logv1.Batch{Tasks: some, LogVersion: a.cfg.LogVersion()}).MarshalVT()
		if err != nil {
			return nil, fmt.Errorf("which tasks of batches are filed: %w", err)
		}
		msgs = append(msgs, natslog.Msg{Subject: topology.BatchFiled(a.cfg.Partition), Data: data, Header: ttl(int64(topology.BatchFiledKept / time.Second))})
	}
	return msgs, nil
}

// counted takes in that counts are stored, and tells the keepers of these batches.
func (a *Archive) counted(raised batchEnds) {
	if raised == nil {
		return
	}
	a.ends.learn(raised)
	if a.cfg.Partitions == 0 {
		return
	}
	hints := make(map[int]*logv1.BatchHint)
	for name := range raised {
		home := topology.BatchPartition(name.Domain, name.ID, topology.Partitioning{History: a.cfg.Partitions})
		if hints[home] == nil {
			hints[home] = &logv1.BatchHint{}
		}
		hints[home].Batches = append(hints[home].Batches, &logv1.BatchHint_Ref{Domain: name.Domain, BatchId: name.ID, MadeMs: name.Made})
	}
	for home, hint := range hints {
		if data, err := hint.MarshalVT(); err == nil {
			_ = a.cfg.NATS.Publish(topology.HintBatch(home), data) // the keeper looks anyway
		}
	}
}
