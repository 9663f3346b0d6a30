package partition

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/window"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// seen is an event read while replaying, before its task.
type seen struct {
	seq   uint64
	at    int64
	event taskstate.Event
}

// replay is what a takeover gathers.
type replay struct {
	events  map[ids.TaskID][]seen
	carried map[ids.TaskID]*record.CarriedTask
	// last is the last event replayed; upTo is how far a previous owner had read each lane: its
	// checkpoint says so, and the events and parkings of tasks that it loaded afterwards.
	last uint64
	upTo [ids.Lanes]uint64
	// parked are the stays (id, parkings) found in the timer store's tail.
	parked map[stay]bool
}

type stay struct {
	id       ids.TaskID
	parkings uint32
}

// read notes that a previous owner had read the submit at pos.
func (r *replay) read(pos ids.Position) {
	if pos.Lane() < ids.Lanes {
		r.upTo[pos.Lane()] = max(r.upTo[pos.Lane()], pos.Seq())
	}
}

// takeOver makes this owner the current one and rebuilds the state from the
// checkpoint and the log: the events from the floor on are gathered by task; then the
// submits from the ack level to where the previous owner had read are applied, each
// task followed by its events. Nothing is sent meanwhile; at the end what is ready is triggered,
// what is finished archived, and what should be in the timer store but is not, parked.
func (o *Owner) takeOver(ctx context.Context) (positions, error) {
	if err := o.claim(ctx); err != nil {
		return positions{}, err
	}
	cp := o.checkpoint
	r := replay{
		events: make(map[ids.TaskID][]seen), carried: make(map[ids.TaskID]*record.CarriedTask),
		parked: make(map[stay]bool), last: cp.EventFloor,
	}
	var ack [ids.Lanes]uint64
	for _, l := range cp.Lanes {
		if l.Lane < ids.Lanes {
			ack[l.Lane], r.upTo[l.Lane] = l.AckSeq, l.ReadSeq
			o.parked.lanes[l.Lane] = l.ParkedSeq
		}
	}
	o.parked.events, o.parked.timerSeq = cp.ParkedEventSeq, cp.TimerSeq
	if err := o.gather(ctx, &r); err != nil {
		return positions{}, err
	}
	o.replaying = true
	for id, c := range r.carried {
		o.replayEvents(o.adopt(c), r.events[id], c.AsOf)
	}
	from := positions{events: r.last + 1}
	for lane := range ids.Lane(ids.Lanes) {
		o.lanes[lane] = window.NewLane(ack[lane])
		o.gates[lane].demand(r.upTo[lane])
	}
	// Every message replayed here pins the floor of the checkpoint, not the present.
	o.eventAt = cp.EventFloor
	for lane := range ids.Lane(ids.Lanes) {
		if err := o.replayLane(ctx, lane, ack[lane]+1, &r); err != nil {
			return positions{}, fmt.Errorf("replay lane %s: %w", lane, err)
		}
		from.lanes[lane] = max(o.lanes[lane].ReadLevel(), r.upTo[lane]) + 1
	}
	o.eventAt = r.last
	o.resume(&r)
	o.replaying = false
	return from, nil
}

// claim bumps the epoch: from here on, a previous owner's checkpoints are refused.
func (o *Owner) claim(ctx context.Context) error {
	cp, revision, err := o.Checkpoints.Load(ctx)
	if err != nil {
		return fmt.Errorf("load the checkpoint: %w", err)
	}
	if cp == nil {
		cp = &logv1.Checkpoint{}
	}
	cp.Epoch++
	cp.Owner, cp.AtMs = o.Node, time.Now().UnixMilli()
	if revision, err = o.Checkpoints.Save(ctx, cp, revision); err != nil {
		return fmt.Errorf("claim epoch %d: %w", cp.Epoch, err)
	}
	o.checkpoint, o.revision = cp, revision
	return nil
}

// gather reads the events from the floor to the log's end, and the tail of the timer store.
func (o *Owner) gather(ctx context.Context, r *replay) error {
	end, err := o.Log.Last(ctx)
	if err != nil {
		return fmt.Errorf("find the log's end: %w", err)
	}
	dec := record.NewDecoder()
	err = o.Log.ReplayEvents(ctx, o.checkpoint.EventFloor+1, end, func(rec Record) error {
		batch, err := dec.Events(rec.Data)
		if err != nil {
			o.poison("event", rec.Seq, err)
			return nil
		}
		r.last = rec.Seq
		for i := range batch.Events {
			ev := &batch.Events[i]
			if c, ok := batch.Carried[i]; ok {
				// One that has seen less than the floor pinned nothing any more when the
				// checkpoint was made: its task had ended, or was carried again.
				if c.AsOf >= o.checkpoint.EventFloor {
					r.carried[ev.ID] = c
				}
				continue
			}
			r.events[ev.ID] = append(r.events[ev.ID], seen{rec.Seq, rec.Time.UnixMilli(), *ev})
			if pos := ev.Fence.Position; pos.Seq() < rec.Seq {
				r.read(pos)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("replay events: %w", err)
	}
	err = o.Timer.Tail(ctx, o.checkpoint.TimerSeq, func(data []byte) error {
		var batch logv1.Batch
		if err := batch.UnmarshalVT(data); err != nil {
			return fmt.Errorf("timer store: %w", err)
		}
		for _, t := range batch.Tasks {
			id, err := ids.TaskIDFromBytes(t.Id)
			if err != nil {
				return fmt.Errorf("timer store: %w", err)
			}
			r.parked[stay{id, t.Parkings}] = true
			r.read(ids.Position(t.Position))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the timer store's tail: %w", err)
	}
	return nil
}

// replayLane applies the submits that a previous owner had read.
func (o *Owner) replayLane(ctx context.Context, lane ids.Lane, from uint64, r *replay) error {
	if from > r.upTo[lane] {
		return nil
	}
	dec := record.NewDecoder()
	return o.Log.ReplayLane(ctx, lane, from, r.upTo[lane], func(rec Record) error {
		entries := o.decodeSubmit(dec, lane, rec)
		if err := o.gates[lane].enter(ctx, rec.Seq, len(entries)); err != nil {
			return err
		}
		o.submit(ids.NewPosition(rec.Seq, lane), rec.Time, entries)
		for _, e := range entries {
			if o.tasks[e.ID] == e {
				o.replayEvents(e, r.events[e.ID], 0)
			}
		}
		return nil
	})
}

// replayEvents applies the events after sequence after that concern this stay of e.
func (o *Owner) replayEvents(e *entry, events []seen, after uint64) {
	for i := range events {
		s := &events[i]
		if s.seq <= after || e.State.Finished() {
			continue
		}
		if s.event.Kind != taskstate.Cancel && s.event.Fence.Position != e.Position {
			continue
		}
		if e.State == taskstate.Waiting {
			// It is on its way into the timer store, or there already.
			if s.event.Kind == taskstate.Cancel {
				e.cancels = append(e.cancels, waitingVerdict{event: s.event, seq: s.seq, at: s.at})
			}
			continue
		}
		if _, fx := taskstate.Apply(&e.Task, &s.event, s.at); fx != (taskstate.Effects{}) || e.counted != e.State {
			o.carryOut(e, fx, source{event: true, seq: s.seq})
		} else {
			o.wake.Set(e, e.WakeAt())
		}
	}
}

// resume sends what the replay held back.
func (o *Owner) resume(r *replay) {
	for _, e := range o.inLine(func(e *entry) bool { return e.State == taskstate.Ready }) {
		o.trigger(e)
	}
	for _, e := range o.tasks {
		switch {
		case e.State != taskstate.Waiting:
		case o.parkIsStored(e, r):
			o.parkStored(e)
		default:
			o.outbox.park(e)
		}
	}
	o.remark(r)
}

// parkIsStored tells whether the previous owner's write of e to the timer store is known
// to be there.
func (o *Owner) parkIsStored(e *entry, r *replay) bool {
	by := e.parkedBy
	if by.event && by.seq <= o.checkpoint.ParkedEventSeq {
		return true
	}
	if !by.event && by.seq <= o.parked.lanes[by.lane] {
		return true
	}
	return r.parked[stay{e.ID, e.Parkings}]
}

// remark files the cancels whose task was not read: it waits in the timer store, or
// further down the log, or is gone.
func (o *Owner) remark(r *replay) {
	var cancels []waitingVerdict
	for id, events := range r.events {
		if _, active := o.tasks[id]; active {
			continue
		}
		if end, known := o.recent.get(id); known && end.state.Finished() {
			continue
		}
		for _, s := range events {
			if s.event.Kind == taskstate.Cancel {
				cancels = append(cancels, waitingVerdict{event: s.event, seq: s.seq, at: s.at})
			}
		}
	}
	sort.Slice(cancels, func(i, j int) bool { return cancels[i].seq < cancels[j].seq })
	for _, c := range cancels {
		o.mark(c)
	}
}
