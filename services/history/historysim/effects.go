package historysim

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
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
		stores{o}.archive(copies(fx.Archive), o.r.ArchiveSeq())
	}
	if len(fx.Letters) > 0 {
		o.until(Op{Kind: DropLetters, Letters: append([]Letter(nil), fx.Letters...)}, func(Outcome) {})
	}
	if fx.Park != nil {
		stores{o}.park(copies(fx.Park), append([]Letter(nil), fx.ParkLetters...))
	}
	if fx.Append != nil {
		o.turns.propose(fx.Append)
	}
	if o.live {
		o.turns.begin(o)
	}
	if fx.Purge != nil {
		levels := *fx.Purge
		levels.Events = min(levels.Events, o.turns.last-1) // the next turn is appended behind the last one
		o.send(&Op{Kind: Purge, Levels: levels}, func(Outcome) { o.give(replica.Purged{}) })
	}
	if fx.Snapshot != nil {
		o.snapshot(fx.Snapshot)
		fx.Snapshot = nil
	}
	if fx.Forget != nil {
		o.send(&Op{Kind: ForgetSnapshots, Snapshot: *fx.Forget}, nil)
	}
	for _, s := range fx.Searches {
		searches{o}.search(s)
	}
	for _, l := range fx.Looks {
		o.send(&Op{Kind: Count, Lane: l.Lane, Place: l.Place, In: l.In, From: l.Read}, func(out Outcome) {
			o.give(replica.Looked{Look: l, All: out.All, Own: out.Own})
		})
	}
	if len(fx.Releases) > 0 || len(fx.Triggers) > 0 {
		o.send(&Op{
			Kind: Hints, Triggers: append([]TriggerBatch(nil), fx.Triggers...), Releases: append([]ReleaseGroup(nil), fx.Releases...),
		}, nil)
	}
	for _, a := range fx.Answers {
		o.send(&Op{Kind: Reply, Answer: a}, nil)
	}
	fx.Reset()
}

// stores carries out what the owner stores, searches what it looks for.
type (
	stores   struct{ *Owner }
	searches struct{ *Owner }
)

// snapshot stores a copy of the state.
func (o *Owner) snapshot(s *replica.Snapshot) {
	var enc record.Encoder
	chunks, ref := enc.Snapshot(s, logVersion, o.epoch)
	o.until(Op{Kind: SaveSnapshot, Snapshot: ref, Chunks: chunks}, func(Outcome) {
		o.give(replica.Stored{Kind: replica.JobSnapshot, Snapshot: ref})
	})
}

// park stores tasks in messages by bucket, one after the other, each until it is stored. Then the letters of those that came back are deleted. If a newer owner has fenced,
// this one never hears that they are parked.
func (o stores) park(tasks []Task, letters []Letter) {
	var ops []Op
	at := make(map[int64]int)
	for i := range tasks {
		bucket := topology.TimerBucket(tasks[i].DueAt)
		k, ok := at[bucket]
		if !ok {
			k = len(ops)
			at[bucket] = k
			ops = append(ops, Op{Kind: Park, Bucket: bucket})
		}
		ops[k].Tasks = append(ops[k].Tasks, tasks[i])
	}
	var enc record.Encoder
	for k := range ops {
		for i := range ops[k].Tasks {
			ops[k].Data = enc.AppendTask(ops[k].Data, &ops[k].Tasks[i])
		}
		ops[k].Data = record.AppendStamp(ops[k].Data, logVersion, o.epoch)
	}
	o.parkNext(ops, 0, func(last uint64) {
		done := func(Outcome) { o.give(replica.Stored{Kind: replica.JobPark, Seq: last}) }
		if len(letters) == 0 {
			done(Outcome{})
			return
		}
		o.until(Op{Kind: ReadFence}, func(fence Outcome) {
			if fence.Seq <= o.epoch { // else what was parked may be void
				o.until(Op{Kind: DropLetters, Letters: letters}, done)
			}
		})
	})
}

func (o stores) parkNext(ops []Op, last uint64, done func(last uint64)) {
	if len(ops) == 0 {
		done(last)
		return
	}
	o.until(ops[0], func(out Outcome) { o.parkNext(ops[1:], max(last, out.Seq), done) })
}

func copies(entries []*replica.Entry) []Task {
	all := make([]Task, len(entries))
	for i, e := range entries {
		all[i] = CopyTask(&e.Task)
	}
	return all
}

// archive stores what is dead as letters first. Then it appends behind the last message that the owner knows. Tasks that another owner has
// appended meanwhile are read, not stored again, and reported.
func (o stores) archive(tasks []Task, last uint64) {
	var dead []Task
	for i := range tasks {
		if tasks[i].State == Dead {
			dead = append(dead, tasks[i])
		}
	}
	file := func(Outcome) { o.file(tasks, last, replica.Stored{Kind: replica.JobArchive, Seq: last}) }
	if len(dead) == 0 {
		file(Outcome{})
		return
	}
	o.until(Op{Kind: StoreLetters, Tasks: dead}, file)
}

func (o stores) file(tasks []Task, last uint64, done replica.Stored) {
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
			there := make(map[Stay]bool)
			for _, stay := range tail.Stays {
				there[stay] = true
			}
			var rest []Task
			for i := range tasks {
				stay := Stay{ID: tasks[i].ID, Parkings: tasks[i].Parkings}
				if !there[stay] {
					rest = append(rest, tasks[i])
				}
				delete(there, stay)
			}
			for _, stay := range tail.Stays {
				if there[stay] {
					done.Others = append(done.Others, stay)
				}
			}
			o.file(rest, tail.Seq, done)
		})
	})
}

// save stores a checkpoint. If its outcome is not known, the stored one tells: a
// checkpoint of another epoch ends this owner.
func (o *Owner) save(cp Checkpoint) {
	o.saves++
	sentAt, count := o.host.Now().Mono, o.saves
	stored := Stored{
		Checkpoint: cp, Epoch: o.epoch, Owner: o.name, Count: count,
	}
	o.send(&Op{Kind: SaveCheckpoint, Checkpoint: stored, Revision: o.revision}, func(out Outcome) {
		if out.Result == OK {
			o.saved(true, out.Revision, sentAt)
			return
		}
		o.until(Op{Kind: LoadCheckpoint}, func(now Outcome) {
			if now.Stored.Epoch != o.epoch || now.Stored.Owner != o.name {
				o.finish(TakenOver)
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

// search has the timer fire what a command is about; then it asks the archive, the timer, and the part of the log that is not read. The lanes'
// ends are measured after the first answer. Letters are looked for before the timer, and those that were not found behind the archive once
// more.
func (o searches) search(s Search) {
	found, levels := &replica.Found{Search: s}, o.r.UnreadLevels("")
	if !s.Command {
		o.searchArchive(found, levels, false)
		return
	}
	o.searchLetter(found, func() {
		o.until(Op{Kind: AskTimer, Search: s}, func(timer Outcome) {
			found.Coming = timer.Coming
			o.searchArchive(found, levels, timer.Fired)
		})
	})
}

// searchArchive goes on with a search; fired: the timer has fired the task. A task that is dead may have come back.
func (o searches) searchArchive(found *replica.Found, levels Levels, fired bool) {
	o.until(Op{Kind: ReadEnds}, func(ends Outcome) {
		found.Ends = ends.Ends
		o.until(Op{Kind: AskArchive, Search: found.Search}, func(archive Outcome) {
			found.Archived = copyOf(archive.Task)
			over := found.Archived != nil && found.Archived.State != Dead
			switch {
			case found.Command:
				o.searchLetter(found, func() {
					_, some := levels.Behind(found.Ends)
					found.Unsure = !found.Coming && found.Archived != nil && !over && some
					if found.Coming || found.Archived != nil && (over || !fired) {
						o.give(found)
						return
					}
					o.searchUnread(found, levels)
				})
			case over:
				o.give(found)
			default:
				o.until(Op{Kind: AskTimer, Search: found.Search}, func(timer Outcome) {
					if found.Waiting = copyOf(timer.Task); found.Waiting != nil || found.Archived != nil && !timer.Fired {
						o.give(found)
						return
					}
					o.searchUnread(found, levels)
				})
			}
		})
	})
}

// searchLetter notes the dead letter that a redrive brings back, if it is not known.
func (o searches) searchLetter(found *replica.Found, then func()) {
	if !found.Redrive || found.DeadLetter != nil {
		then()
		return
	}
	o.until(Op{Kind: AskLetter, Search: found.Search}, func(letter Outcome) {
		found.DeadLetter, found.DeadLetterSeq = copyOf(letter.Task), letter.Seq
		then()
	})
}

func (o searches) searchUnread(found *replica.Found, levels Levels) {
	o.until(Op{Kind: AskUnread, Search: found.Search, Levels: levels}, func(unread Outcome) {
		if found.Unread = copyOf(unread.Task); found.Unread != nil {
			found.Unread.Before, found.Unread.Position = found.Unread.Position, unread.Position
		}
		o.give(found)
	})
}

// fetch keeps every reader supplied. A lane is read only while it has room.
func (o *Owner) fetch() {
	if !o.live || o.draining {
		return
	}
	for i := range o.readers {
		rd := &o.readers[i]
		if rd.waiting || len(rd.queue) > 2 || !o.r.Room(ids.Lane(i)) {
			continue
		}
		rd.waiting = true
		o.read(Op{Kind: FetchLane, Lane: ids.Lane(i), From: rd.next}, rd)
	}
	lagging := make(map[Queue]bool)
	for _, reading := range o.r.Readings() {
		lagging[reading.Queue] = true
		rd := o.queues[reading.Queue]
		if rd == nil {
			rd = &reader{next: reading.From}
			o.queues[reading.Queue] = rd
		}
		if !rd.waiting && len(rd.queue) <= 2 && reading.Room {
			rd.waiting = true
			o.read(Op{Kind: FetchLane, Lane: reading.Lane, Place: reading.Place, From: rd.next}, rd)
		}
	}
	for at := range o.queues {
		if !lagging[at] {
			delete(o.queues, at)
		}
	}
}

// read hands what an operation has found to a reader.
func (o *Owner) read(op Op, rd *reader) {
	o.until(op, func(out Outcome) {
		rd.waiting = false
		for _, m := range out.Messages {
			rd.queue = append(rd.queue, m)
			rd.next = m.Seq + 1
		}
		o.wake()
	})
}
