package historysim

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

// flush ends a turn: writes are begun, hints go out, then answers. While the lease does not
// hold, an owner may keep all but the checkpoint back.
func (o *Owner) flush() {
	fx := &o.fx
	if fx.Save != nil {
		o.save(*fx.Save)
		fx.Save = nil
	}
	if !o.LeaseHolds() && o.host.Pick(2) == 0 {
		return
	}
	o.r.Flush(o.host.Now(), fx)
	o.check()
	if fx.Archive != nil {
		o.archive(copies(fx.Archive), o.r.ArchiveSeq(), replica.Stored{Kind: replica.JobArchive})
	}
	if fx.Park != nil {
		o.until(Op{Kind: Park, Tasks: copies(fx.Park)}, func(out Outcome) {
			o.give(replica.Stored{Kind: replica.JobPark, Seq: out.Seq})
		})
	}
	if fx.Append != nil {
		o.append(fx.Append)
	}
	if fx.Purge != nil {
		o.send(&Op{Kind: Purge, Levels: *fx.Purge}, func(Outcome) { o.give(replica.Purged{}) })
	}
	for _, s := range fx.Searches {
		o.search(s)
	}
	if len(fx.Releases) > 0 || len(fx.Triggers) > 0 {
		o.send(&Op{
			Kind: Hints, Triggers: append([]TriggerGroup(nil), fx.Triggers...), Releases: append([]ReleaseGroup(nil), fx.Releases...),
		}, nil)
	}
	for _, a := range fx.Answers {
		o.send(&Op{Kind: Reply, Answer: a}, nil)
	}
	fx.Reset()
}

func copies(entries []*replica.Entry) []Task {
	all := make([]Task, len(entries))
	for i, e := range entries {
		all[i] = CopyTask(&e.Task)
	}
	return all
}

// archive appends behind the last message that the owner knows. What another owner has
// appended meanwhile is read, is not stored again, and reported.
func (o *Owner) archive(tasks []Task, last uint64, done replica.Stored) {
	done.Seq = last
	if len(tasks) == 0 {
		o.give(done)
		return
	}
	o.send(&Op{Kind: AppendArchive, Tasks: tasks, Expected: last}, func(out Outcome) {
		if out.Result == OK {
			done.Seq = out.Seq
			o.give(done)
			return
		}
		o.until(Op{Kind: ReadArchive, From: last + 1}, func(tail Outcome) {
			there := make(map[ids.TaskID]bool)
			for _, id := range tail.IDs {
				there[id] = true
			}
			var rest []Task
			for i := range tasks {
				if !there[tasks[i].ID] {
					rest = append(rest, tasks[i])
				}
				delete(there, tasks[i].ID)
			}
			for _, id := range tail.IDs {
				if there[id] {
					done.Others = append(done.Others, id)
				}
			}
			o.until(Op{Kind: ReadEnds}, func(ends Outcome) {
				done.Ends = Levels{Lanes: ends.Ends, Events: ends.Events}
				o.archive(rest, tail.Seq, done)
			})
		})
	})
}

// append writes the owner's own events.
func (o *Owner) append(own []replica.Proposal) {
	op := Op{Kind: AppendEvents}
	for i := range own {
		p := &own[i]
		op.Events = append(op.Events, Event{Kind: p.Kind, ID: p.ID, Fence: p.Fence, Message: p.Message})
		if p.Carried != nil {
			if op.Carried == nil {
				op.Carried = make(map[int]CarriedState)
			}
			op.Carried[i] = CarriedState{CopyTask(p.Carried), p.AsOf}
		}
	}
	o.until(op, func(out Outcome) { o.give(replica.Stored{Kind: replica.JobAppend, Seq: out.Seq}) })
}

// save stores a checkpoint. If its outcome is not known, the stored one tells: a
// checkpoint of another epoch ends this owner.
func (o *Owner) save(cp Checkpoint) {
	o.saves++
	sentAt, count := o.host.Now().Mono, o.saves
	stored := Stored{Checkpoint: cp, Epoch: o.epoch, Owner: o.name, Count: count}
	o.send(&Op{Kind: SaveCheckpoint, Checkpoint: stored, Revision: o.revision}, func(out Outcome) {
		if out.Result == OK {
			o.saved(true, out.Revision, sentAt)
			return
		}
		o.until(Op{Kind: LoadCheckpoint}, func(now Outcome) {
			if now.Stored.Epoch != o.epoch || now.Stored.Owner != o.name {
				o.finish("taken over")
				return
			}
			o.saved(now.Stored.Count == count, now.Revision, sentAt)
		})
	})
}

func (o *Owner) saved(ok bool, revision uint64, sentAt time.Duration) {
	o.revision = revision
	if ok {
		o.stalled = false
	}
	o.give(replica.Saved{OK: ok, SentAt: sentAt})
	if ok && o.drained {
		o.finish("drained")
	}
}

// search asks the timer first, then the archive, then the part of the log that is not
// read; the lanes' ends are measured after the timer's answer.
func (o *Owner) search(s Search) {
	found := &replica.Found{Search: s}
	o.until(Op{Kind: AskTimer, Search: s}, func(timer Outcome) {
		if s.Cancel {
			found.Taken = entryOf(timer.Task)
		} else {
			found.Waiting = entryOf(timer.Task)
		}
		o.until(Op{Kind: ReadEnds}, func(ends Outcome) {
			found.Ends = ends.Ends
			o.until(Op{Kind: AskArchive, Search: s}, func(archive Outcome) {
				found.Archived = entryOf(archive.Task)
				if !s.Cancel {
					o.give(found)
					return
				}
				o.until(Op{Kind: AskUnread, Search: s, Starts: o.r.ReadLevels()}, func(unread Outcome) {
					found.Unread = entryOf(unread.Task)
					o.give(found)
				})
			})
		})
	})
}
