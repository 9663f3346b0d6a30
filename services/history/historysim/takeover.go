package historysim

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

// Start begins the takeover: load the checkpoint and claim it.
func (o *Owner) Start() {
	o.until(Op{Kind: LoadCheckpoint}, func(out Outcome) {
		if o.epoch != 0 && out.Stored.Epoch == o.epoch && out.Stored.Owner == o.name {
			o.claimed(out) // the claim of which we heard nothing
			return
		}
		o.epoch, o.claimedAt = out.Stored.Epoch+1, o.host.Now().Mono
		o.found, o.cancelsDoneAt = out.Stored, out.Stored.CancelsDoneAt
		claim := out.Stored
		claim.Epoch, claim.Owner, claim.Count = o.epoch, o.name, 0
		o.send(&Op{Kind: SaveCheckpoint, Checkpoint: claim, Revision: out.Revision}, func(saved Outcome) {
			if saved.Result != OK {
				o.host.After(retryAfter, o.startAgain)
				return
			}
			o.claimed(Outcome{Stored: claim, Revision: saved.Revision})
		})
	})
}

func (o *Owner) startAgain() {
	if !o.ended {
		o.Start()
	}
}

// claimed begins the replay: first what older owners park from now on is made void, then
// the tails of the other stores are read, then the log's end.
func (o *Owner) claimed(out Outcome) {
	o.revision, o.base = out.Revision, out.Stored.Checkpoint
	o.r = replica.New(o.cfg, o.base, o.claimedAt)
	o.tick()
	o.until(Op{Kind: AppendFence, Data: fence(o.epoch)}, func(Outcome) {
		o.until(Op{Kind: ReadTimer, From: o.base.TimerSeq + 1}, func(timer Outcome) {
			if timer.Seq < o.base.TimerSeq {
				o.finish("the timer store ends before the checkpoint")
				return
			}
			o.recovered.Parked, o.recovered.TimerSeq = parkedTail(timer.Batches, &o.found, o.epoch), timer.Seq
			o.readArchiveTail()
		})
	})
}

func (o *Owner) readArchiveTail() {
	o.until(Op{Kind: ReadArchive, From: o.base.ArchiveSeq + 1}, func(archive Outcome) {
		if archive.Seq < o.base.ArchiveSeq {
			o.finish("the archive ends before the checkpoint")
			return
		}
		o.recovered.Archived, o.recovered.ArchiveSeq = make(replica.Ends), archive.Seq
		for _, stay := range archive.Stays {
			o.recovered.Archived.Add(stay)
		}
		o.readLog()
	})
}

func (o *Owner) readLog() {
	o.until(Op{Kind: ReadEnds}, func(ends Outcome) {
		read := o.base.Floor
		for _, seq := range o.base.Read {
			read = max(read, seq)
		}
		for _, q := range o.base.Queues {
			read = max(read, q.Read, q.Last)
		}
		if ends.Seq < read {
			o.finish("the log ends before the checkpoint")
			return
		}
		o.turns.claim(o, o.epoch, func(end uint64) {
			o.recovered.Ends = Levels{Lanes: ends.Ends, Events: end}
			o.until(Op{Kind: ReadLog, Starts: o.base.Ack, Ends: o.base.Read, From: o.base.Floor + 1, To: end}, func(log Outcome) {
				for _, m := range log.Messages {
					o.replaying = append(o.replaying, replayed{m, false})
				}
				o.until(Op{Kind: ReadQueues, Queues: o.base.Queues}, func(queues Outcome) {
					for _, m := range queues.Messages {
						o.replaying = append(o.replaying, replayed{m, true})
					}
					slices.SortStableFunc(o.replaying, func(a, b replayed) int { return cmp.Compare(a.Seq, b.Seq) })
					if o.logRead = true; len(o.replaying) == 0 {
						o.recover()
					}
					o.wake()
				})
			})
		})
	})
}

// recover ends the takeover and begins to read live.
func (o *Owner) recover() {
	o.r.Step(o.recovered, o.host.Now(), &o.fx)
	o.check()
	o.recovered = replica.Recovered{}
	o.live = true
	levels := o.r.ReadLevels()
	for i := range levels {
		o.readers[i].next = levels[i] + 1
	}
	if o.draining {
		o.give(replica.Draining{})
	}
}

// claim appends the first turn of an epoch, so that no other owner appends any more.
func (t *turns) claim(w writer, epoch uint64, done func(seq uint64)) {
	t.name = TurnName{epoch, 1}
	w.until(Op{Kind: ReadLastTurn}, func(last Outcome) {
		claimed := func(out Outcome) {
			t.last = out.Seq
			done(out.Seq)
		}
		switch {
		case last.LastTurn.Epoch > epoch:
			w.finish("taken over")
			return
		case last.LastTurn == t.name: // its acknowledgement was lost
			claimed(last)
			return
		}
		w.send(&Op{Kind: AppendTurn, Turn: []*Message{{Event: true}}, Name: t.name, Expected: last.Seq}, func(out Outcome) {
			if out.Result == OK {
				claimed(out)
				return
			}
			t.claim(w, epoch, done)
		})
	})
}
