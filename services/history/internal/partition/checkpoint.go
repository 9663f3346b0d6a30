package partition

import (
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// makeCheckpoint tells where the owner stands.
func (o *Owner) makeCheckpoint(now time.Time) *logv1.Checkpoint {
	o.parked.idle(o)
	cp := &logv1.Checkpoint{
		Epoch: o.checkpoint.Epoch, Owner: o.Node, EventFloor: o.floor(), AtMs: now.UnixMilli(),
		TimerSeq: o.parked.timerSeq, ParkedEventSeq: o.parked.events,
	}
	for i, l := range o.lanes {
		cp.Lanes = append(cp.Lanes, &logv1.LaneCursor{
			Lane: uint32(i), AckSeq: l.AckLevel(), ReadSeq: l.ReadLevel(), ParkedSeq: o.parked.lanes[i],
		})
	}
	return cp
}

// floor is the last event that concerns nothing that is still open.
func (o *Owner) floor() uint64 {
	floor := o.eventAt
	lower := func(seq uint64) { floor = min(floor, seq) }
	for _, l := range o.lanes {
		if f, ok := l.Floor(); ok {
			lower(f)
		}
	}
	for _, m := range o.marks {
		lower(m.seq - 1)
	}
	for _, waiting := range o.unread {
		lower(waiting[0].seq - 1)
	}
	for _, e := range o.carried {
		lower(e.carriedAsOf)
	}
	return floor
}

// beat does what is due now and then.
func (o *Owner) beat(now time.Time) {
	o.waiters.expire(o, now.UnixMilli())
	o.Wire.Publish(topology.HintLoad, o.load())
	last := time.UnixMilli(o.checkpoint.AtMs)
	if !o.saving && now.Sub(last) >= o.Config.CheckpointEvery {
		o.save(now)
	}
	if o.nextPurge.Before(now) && !o.purging {
		o.nextPurge = now.Add(o.Config.PurgeEvery)
		o.purge()
		o.expireMarks(now)
		o.carryForward()
	}
	if o.nextHeal.Before(now) {
		o.nextHeal = now.Add(healEvery)
		o.heal(now)
	}
}

// healEvery is how often the tasks in memory are looked through for lost triggers.
const healEvery = 5 * time.Second

func (o *Owner) load() []byte {
	h := rpcv1.HistoryLoad{Partition: int32(o.Partition)}
	for i, l := range o.lanes {
		h.Active += int64(l.Active())
		h.UnreadBatches += o.pending[i].Load()
	}
	data, err := h.MarshalVT()
	if err != nil {
		panic("partition: " + err.Error()) // every field is of our making
	}
	return data
}

// save writes the checkpoint off the loop, one at a time.
func (o *Owner) save(now time.Time) {
	o.saving = true
	cp, revision, read := o.makeCheckpoint(now), o.revision, o.readLevels()
	go func() {
		ctx, cancel := context.WithTimeout(o.outbox.ctx, 5*time.Second)
		defer cancel()
		next, err := o.Checkpoints.Save(ctx, cp, revision)
		o.countBacklog(ctx, read)
		o.post(o.outbox.ctx, func() {
			o.saving = false
			switch {
			case err == nil:
				o.checkpoint, o.revision = cp, next
			case errors.Is(err, ErrTakenOver):
				o.fatal = err
			default:
				o.checkpoint.AtMs = now.UnixMilli() // try again in a while
				o.Logger.Warn("checkpoint not saved", "partition", o.Partition, "error", err)
			}
		})
	}()
}

// countBacklog refreshes how much is behind lanes that are paused: their readers do
// not hear of new messages.
func (o *Owner) countBacklog(ctx context.Context, read [ids.Lanes]uint64) {
	for lane := range ids.Lane(ids.Lanes) {
		if !o.gates[lane].shut() {
			continue
		}
		if n, err := o.Finder.Backlog(ctx, lane, read[lane]); err == nil {
			o.pending[lane].Store(int64(n))
		}
	}
}

// purge lets the log forget what the saved checkpoint has passed.
func (o *Owner) purge() {
	cp := o.checkpoint
	var lanes [ids.Lanes]uint64
	for _, l := range cp.Lanes {
		lanes[l.Lane] = l.AckSeq
	}
	o.purging = true
	go func() {
		ctx, cancel := context.WithTimeout(o.outbox.ctx, time.Minute)
		defer cancel()
		err := o.Store.Forget(ctx, lanes, cp.EventFloor)
		o.post(o.outbox.ctx, func() {
			o.purging = false
			if err != nil && o.outbox.ctx.Err() == nil {
				o.Logger.Warn("the log could not forget what is finished; tries again", "partition", o.Partition, "error", err)
			}
		})
	}()
}
