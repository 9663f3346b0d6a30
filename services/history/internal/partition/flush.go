package partition

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/hints"
)

// flush carries out what the turn asks for: writes begin, hints go out, then answers and events. While the lease does not hold it
// keeps everything but the checkpoint back.
func (o *Owner) flush() {
	o.save()
	now := o.now()
	if !o.core.LeaseHolds(now.Mono) || o.fatal != nil {
		return
	}
	fx := &o.fx
	o.core.Flush(now, fx)
	if len(fx.Archive) > 0 {
		go o.writers.archive(fx.Archive, o.core.ArchiveSeq())
	}
	if len(fx.Letters) > 0 {
		//lint:ignore errcheck it fails only when this owner has ended
		go o.writers.dropLetters(o.writers.work, slices.Clone(fx.Letters))
	}
	if len(fx.Park) > 0 {
		go o.writers.park(fx.Park, fx.ParkLetters)
	}
	if fx.Append != nil {
		o.turns.Propose(fx.Append)
	}
	o.turns.Begin()
	if fx.Purge != nil {
		levels := *fx.Purge
		levels.Events = min(levels.Events, o.turns.Last()-1) // the next turn is appended behind the last one
		go o.writers.purge(levels)
	}
	if fx.Snapshot != nil {
		go o.writers.snapshot(fx.Snapshot)
	}
	if fx.Forget != nil {
		go o.writers.forget(*fx.Forget)
	}
	if len(fx.Searches) > 0 {
		o.searches.add(o.core.UnreadLevels(""), fx.Searches)
	}
	for _, l := range fx.Looks {
		go o.readers.look(l)
	}
	if len(fx.Triggers) > 0 || len(fx.Releases) > 0 {
		hints.Send(o.Wire, o.Partitioning.Matching, fx.Triggers, fx.Releases)
	}
	o.spans.Show(fx)
	for _, a := range fx.Answers {
		o.answer(a)
	}
	for _, e := range fx.Ended {
		o.waiters.ended(&e.Task)
		o.ended.Note(&e.Task)
		o.Metrics.ended(&e.Task)
		o.events.Ended(&e.Task, now.MS)
	}
	for _, slow := range fx.Slow {
		o.events.Slow(slow, now.MS)
	}
	o.events.Flush()
	o.Metrics.add(fx)
	fx.Reset()
}

// answer sends the verdicts on an event batch. If they reach no one, the attempts that they grant for the first time
// are taken back at once rather than when their leases run out.
func (o *Owner) answer(a *replica.Answer) {
	var grants []replica.GrantRef
	for i := range a.Verdicts {
		if g := &a.Verdicts[i].Grant; g.Task != nil && g.First {
			grants = append(grants, replica.GrantRef{ID: g.Task.ID, Fence: g.Token})
		}
	}
	o.Metrics.started(a.Verdicts)
	o.encoder.NowMS = o.now().MS
	for i, m := range o.encoder.Verdicts(a) {
		if i > 0 || len(grants) == 0 {
			o.Wire.Answer(a.ReplyTo, m, nil)
			continue
		}
		o.Wire.Answer(a.ReplyTo, m, func() { o.report(replica.Bounced{Grants: grants}) })
	}
}

// loadReport is what frontends learn about the partition.
func (o *Owner) loadReport() (subject string, data []byte) {
	waiting := o.core.Waiting()
	tasks, bytes := o.core.Shareable(o.readers.pending[ids.LaneFirst].Load())
	load := &rpcv1.HistoryLoad{
		Partition: int32(o.Partition), Active: int64(o.core.Len()), UnreadBatches: o.readers.unread(""),
		CancelsFull: waiting.Full, CancelsFullOf: waiting.Domains, SharedTasks: tasks, SharedBytes: bytes,
		SharedRead:  o.core.ReadLevels()[ids.LaneFirst],
		StorageFull: o.StorageFull != nil && o.StorageFull() != "",
	}
	for _, at := range o.core.Apart() {
		load.Apart = append(load.Apart, string(at))
	}
	o.tellQueued(load)
	o.core.OrderKeys().Full(func(key line.Key, tasks int) {
		load.FullKeys = append(load.FullKeys, &rpcv1.FullKey{Domain: key.Domain, OrderKey: key.Name, Tasks: int64(tasks)})
	})
	return topology.HintLoad, encode(load)
}

// encode encodes a message of our own making.
func encode(m interface{ MarshalVT() ([]byte, error) }) []byte {
	data, err := m.MarshalVT()
	if err != nil {
		panic("partition: " + err.Error()) // every field is of our making
	}
	return data
}
