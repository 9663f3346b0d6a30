package historysim

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// Start begins the takeover.
func (o *Owner) Start() { takeover{o}.begin() }

// takeover is how an owner begins.
type takeover struct{ *Owner }

// begin loads the checkpoint and claims it.
func (o takeover) begin() {
	o.until(Op{Kind: LoadCheckpoint}, func(out Outcome) {
		if o.epoch != 0 && out.Stored.Epoch == o.epoch && out.Stored.Owner == o.name {
			o.claimed(out) // the claim of which we heard nothing
			return
		}
		o.epoch, o.start.ClaimedAt = out.Stored.Epoch+1, o.host.Now().Mono
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

func (o takeover) startAgain() {
	if !o.ended {
		o.begin()
	}
}

// claimed loads the snapshot; then what older owners park from now on is made void, and
// the tails of the other stores are read, then the log's end.
func (o takeover) claimed(out Outcome) {
	o.revision, o.start.Checkpoint, o.start.Epoch = out.Revision, out.Stored.Checkpoint, o.epoch
	o.loadSnapshot(func(snap *replica.Snapshot) {
		o.start.Snapshot = snap
		o.until(Op{Kind: AppendFence, Data: fence(o.epoch)}, func(Outcome) {
			o.until(Op{Kind: ReadTimer, From: snap.TimerSeq + 1}, func(timer Outcome) {
				o.start.Parked, o.start.TimerSeq = parkedTail(timer.Batches, snap.TimerEpoch, o.epoch), timer.Seq
				o.readArchiveTail()
			})
		})
	})
}

func (o takeover) loadSnapshot(then func(*replica.Snapshot)) {
	ref := &o.start.Checkpoint.Snapshot
	if ref.Seq == 0 {
		then(&replica.Snapshot{})
		return
	}
	o.until(Op{Kind: LoadSnapshot, Snapshot: *ref}, func(out Outcome) {
		snap, err := record.NewDecoder().Snapshot(out.Chunks, ref)
		if err == nil {
			then(snap)
			return
		}
		o.until(Op{Kind: LoadCheckpoint}, func(now Outcome) {
			if now.Stored.Epoch == o.epoch {
				o.host.Fault("%s loads the snapshot of turn %d: %v", o.name, ref.Seq, err)
			}
			o.finish(TakenOver) // a newer owner has deleted it
		})
	})
}

func (o takeover) readArchiveTail() {
	o.until(Op{Kind: ReadArchive, From: o.start.Snapshot.ArchiveSeq + 1}, func(archive Outcome) {
		o.start.Archived, o.start.ArchiveSeq = make(replica.Ends), archive.Seq
		for _, stay := range archive.Stays {
			o.start.Archived.Add(stay)
		}
		o.readLog()
	})
}

func (o takeover) readLog() {
	o.until(Op{Kind: ReadEnds}, func(ends Outcome) {
		if err := o.start.Check(ends.Seq, o.start.TimerSeq, o.start.ArchiveSeq); err != nil {
			o.finish(err.Error())
			return
		}
		o.r = replica.New(o.cfg, &o.start)
		o.check()
		o.tick()
		o.turns.claim(o.Owner, o.epoch, func(end uint64) {
			starts := o.start.Snapshot.Read
			for _, q := range o.start.Snapshot.Queues {
				starts[q.Lane] = min(starts[q.Lane], q.Read)
			}
			o.until(Op{Kind: ReadLog, Starts: starts, From: o.start.Snapshot.Seq + 1, To: end}, func(log Outcome) {
				o.again.add(log.Messages)
				if o.again.over() {
					o.recover()
				}
				o.wake()
			})
		})
	})
}

// recover ends the takeover and begins to read live.
func (o *Owner) recover() {
	o.r.Step(replica.Recovered{}, o.host.Now(), &o.fx)
	o.check()
	o.again, o.start = replay{}, replica.Start{}
	o.live = true
	levels := o.r.ReadLevels()
	for i := range levels {
		o.readers[i].next = levels[i] + 1
	}
	if o.draining {
		o.give(replica.Draining{})
	}
}

// turns are what an owner appends, as internal/turn does. Here each batch of a turn is a message of its own; they are stored together.
type turns struct {
	// requests wait for a turn, own is what the owner proposes.
	requests []*Message
	own      *Message
	// stored is a turn that is stored and not stepped through, last its last message.
	stored []*Message
	last   uint64
	// name is that of the last turn of this owner; busy: it is under way.
	name TurnName
	busy bool
}

func (t *turns) idle() bool { return !t.busy && len(t.stored) == 0 }

// propose adds the owner's own events to the next turn.
func (t *turns) propose(own []replica.Proposal) {
	t.own = &Message{Event: true}
	for i := range own {
		p := &own[i]
		t.own.Events = append(t.own.Events, Event{
			Kind: p.Kind, ID: p.ID, Fence: p.Fence, Domain: p.Domain, Message: p.Message, Undelivered: p.Undelivered, NotAfter: p.NotAfter, SilentLease: p.SilentLease,
		})
	}
}

// begin appends what was proposed, and some of what has been asked for, in a turn behind the last one.
func (t *turns) begin(o *Owner) {
	if !t.idle() || t.own == nil && len(t.requests) == 0 {
		return
	}
	var turn []*Message
	n, proposed := o.host.Pick(len(t.requests)+1), t.own != nil
	if proposed {
		turn, t.own = append(turn, t.own), nil
	} else {
		n = max(n, 1)
	}
	turn = append(turn, t.requests[:n]...)
	t.requests = t.requests[n:]
	t.name.Number++
	for i, m := range turn {
		own := *m
		own.Turn, turn[i] = t.name, &own
	}
	turn[0].Admitted, turn[0].Terms = o.r.BeginTurn(), o.terms(turnOf(turn).Batches)
	t.busy = true
	t.append(o, turn, func(out Outcome) {
		t.busy = false
		t.stored, t.last = out.Messages, out.Seq
		if proposed {
			o.give(replica.Stored{Kind: replica.JobAppend})
		}
		o.wake()
	})
}

// terms are those that the next turn must have.
func (o *Owner) terms(next []*replica.Events) (all []*Terms) {
	revision := func(of TypeName) int64 {
		if t := o.host.Terms(of); t != nil {
			return t.Policy.TypeRevision
		}
		return 0
	}
	for _, of := range replica.OutOfDate(o.r, next, revision) {
		all = append(all, o.host.Terms(of))
	}
	return all
}

// append repeats a turn until it is stored. If it may be, or another one is there, the last turn tells.
func (t *turns) append(o *Owner, turn []*Message, done func(Outcome)) {
	o.send(&Op{Kind: AppendTurn, Turn: turn, Name: t.name, Expected: t.last}, func(out Outcome) {
		if out.Result == OK {
			done(out)
			return
		}
		o.until(Op{Kind: ReadLastTurn}, func(last Outcome) {
			switch {
			case last.LastTurn == t.name:
				done(last)
			case last.Seq == t.last:
				t.append(o, turn, done)
			default:
				o.finish(TakenOver)
			}
		})
	})
}

// claim appends the first turn of an epoch, so that no other owner appends any more.
func (t *turns) claim(o *Owner, epoch uint64, done func(seq uint64)) {
	t.name = TurnName{epoch, 1}
	o.until(Op{Kind: ReadLastTurn}, func(last Outcome) {
		claimed := func(out Outcome) {
			t.last = out.Seq
			done(out.Seq)
		}
		switch {
		case last.LastTurn.Epoch > epoch:
			o.finish(TakenOver)
			return
		case last.LastTurn == t.name: // its acknowledgement was lost
			claimed(last)
			return
		}
		o.send(&Op{Kind: AppendTurn, Turn: []*Message{{Event: true, Turn: t.name}}, Name: t.name, Expected: last.Seq}, func(out Outcome) {
			if out.Result == OK {
				claimed(out)
				return
			}
			t.claim(o, epoch, done)
		})
	})
}

// turnOf is the messages of a turn as the replica takes them.
func turnOf(all []*Message) *replica.Turn {
	last := all[len(all)-1]
	t := &replica.Turn{Seq: last.Seq, At: last.At, Admitted: all[0].Admitted, Terms: all[0].Terms}
	for _, m := range all {
		t.Batches = append(t.Batches, &replica.Events{
			Bytes: 100 * len(m.Events), ReplyTo: m.ReplyTo, RequestID: m.Request,
			Shard: m.Shard, Epoch: m.Epoch, Delivered: m.Delivered, Polls: m.Polls,
			Events: append([]Event(nil), m.Events...),
		})
	}
	return t
}

// submitsOf is a message of a lane, which the reader of a queue has read, or of the lane.
func submitsOf(m *Message, by ids.Place) *replica.Submits {
	in := &replica.Submits{Lane: m.Lane, Place: m.Place, By: by, Seq: m.Seq, At: m.At, Bytes: 200 * len(m.Tasks)}
	for i := range m.Tasks {
		in.Tasks = append(in.Tasks, &replica.Entry{Task: CopyTask(&m.Tasks[i])})
	}
	return in
}

// replay is what a takeover takes of the log, turn by turn.
type replay struct {
	// turns have not been stepped through, once read; unread is what the lanes have for them.
	turns  [][]*Message
	unread []*Message
	read   bool
	// steps counts those of the next turn that are taken, messages what the next one has read, from a level on, and passed what was
	// offered to it last.
	steps                  int
	from, messages, passed uint64
}

func (r *replay) add(all []*Message) {
	for _, m := range all {
		switch n := len(r.turns); {
		case !m.Event:
			r.unread = append(r.unread, m)
		case n > 0 && r.turns[n-1][0].Turn == m.Turn:
			r.turns[n-1] = append(r.turns[n-1], m)
		default:
			r.turns = append(r.turns, []*Message{m})
		}
	}
	r.read = true
}

func (r *replay) over() bool { return r.read && len(r.turns) == 0 }

// next takes the next step of an owner before, or its turn if that has no more.
func (r *replay) next(o *Owner) {
	turn := r.turns[0]
	if seen := turn[len(turn)-1].Seq <= o.r.EventAt(); seen || len(turn[0].Admitted) == r.steps {
		if o.take(turnOf(turn), turn) {
			r.turns, r.steps = r.turns[1:], 0
		}
		return
	}
	step := turn[0].Admitted[r.steps]
	if step.Kind != replica.Read {
		o.r.Replay(step)
		o.check()
		r.steps++
		return
	}
	for _, m := range r.unread {
		if m.Lane != step.Lane || !step.Place.Has(m.Place) || m.Seq <= max(r.passed, o.r.ReadLevel(step.Queue)) {
			continue
		}
		if m.Seq > step.To {
			break
		}
		r.take(o, &step, submitsOf(m, step.Place), m)
		return
	}
	o.host.Fault("%s: message %d was admitted and is not in the log", o.name, step.To)
}

// take takes a message of a step.
func (r *replay) take(o *Owner, step *replica.Admission, in *replica.Submits, m *Message) {
	level := o.r.ReadLevel(step.Queue)
	if r.passed == 0 {
		r.from = level
	}
	if !o.take(in, []*Message{m}) {
		return
	}
	if r.passed = m.Seq; o.r.ReadLevel(step.Queue) > level { // else the queue has nothing to do with it
		r.messages++
	}
	if o.r.ReadLevel(step.Queue) < step.To {
		return
	}
	if r.from == step.From && r.messages != step.Messages {
		o.host.Fault("%s: %d messages up to %d were admitted, and %d are in the log", o.name, step.Messages, step.To, r.messages)
	}
	r.steps++
	r.messages, r.passed = 0, 0
}
