package simulation

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// events is the events' subject among the subjects of the log, behind the lanes.
const events = ids.Lanes

// firstEpochMS is the earliest server's time at the beginning, Unix ms, at the begin of a minute.
const firstEpochMS = 1_800_000_000_000

// store is one that may be full.
type store int

// The stores that may be full.
const (
	logFull store = iota
	archiveFull
	timerFull
	storesEnd
)

// stores are the streams and the checkpoint.
type stores struct {
	// log is the log by sequence, from 1; nil is a firing cursor.
	log []*historysim.Message
	// senders are who sent what a matching shard asked for, by sequence.
	senders map[uint64]*matchProc
	// lastTurn is the last turn of the log, and turn its messages.
	lastTurn historysim.TurnName
	turn     []*historysim.Message
	// storedAt is when each message was stored, by sequence less one.
	storedAt []time.Duration
	// subjects are the messages of each lane and the events that are not purged.
	subjects [ids.Lanes + 1][]*historysim.Message
	waiters  [ids.Lanes + 1][]func()

	// waiting is the store of waiting tasks, storeWaiters are the timers that wait for its next
	// message.
	waiting      timerStore
	storeWaiters []func()
	cursor       []byte
	cursorSeq    uint64
	decoder      historysim.Decoder

	// proposed are the appends to three servers that are in flight, by kind.
	proposed [historysim.Reply + 1]*proposal

	// fullUntil is until when a store takes nothing.
	fullUntil [storesEnd]time.Duration

	checkpoint historysim.Stored
	revision   uint64
	snapshots  map[snapshotName][][]byte

	// archived are the last ends in the archive.
	archive  [][]historysim.Task
	archived map[ids.TaskID]*historysim.Task
	// letters are the dead letters; lastLetter is the sequence of the last one.
	letters    map[ids.TaskID]*letter
	lastLetter uint64
}

type snapshotName struct{ epoch, seq uint64 }

// forgetSnapshots deletes those that are older than one.
func (w *world) forgetSnapshots(op *historysim.Op) {
	maps.DeleteFunc(w.snapshots, func(name snapshotName, _ [][]byte) bool {
		return cmp.Or(cmp.Compare(name.epoch, op.Snapshot.Epoch), cmp.Compare(name.seq, op.Snapshot.Seq)) < 0
	})
}

// refuses tells whether a store takes nothing now.
func (w *world) refuses(s store) bool { return w.now < max(w.down, w.fullUntil[s]) }

// appendLog stores a message.
func (w *world) appendLog(m *historysim.Message) uint64 {
	m.Seq, m.At = uint64(len(w.log)+1), w.serverMS()
	m.ReplyTo = strconv.FormatUint(m.Seq, 10)
	if m.Event && m.Request == 0 {
		m.ReplyTo = ""
	}
	w.log, w.storedAt = append(w.log, m), append(w.storedAt, w.now)
	for i := range m.Tasks {
		if u := m.Tasks[i].Unique(); u != nil && u.Before > 0 {
			w.keyAt[m.Tasks[i].ID] = append(w.keyAt[m.Tasks[i].ID], m.Seq-uint64(u.Before))
		}
	}
	i := int(m.Lane)
	if m.Event {
		i = events
	}
	w.subjects[i] = append(w.subjects[i], m)
	waiting := w.waiters[i]
	w.waiters[i] = nil
	for _, wake := range waiting {
		wake()
	}
	w.check.appended(m)
	return m.Seq
}

// appendTurn stores the batches of a turn, if the last one is expected.
func (w *world) appendTurn(op *historysim.Op) historysim.Outcome {
	if op.Expected != w.lastEvent() {
		return historysim.Outcome{Result: historysim.Conflict}
	}
	w.lastTurn, w.turn = op.Name, nil
	for _, asked := range op.Turn {
		m := *asked
		seq := w.appendLog(&m)
		w.turn = append(w.turn, &m)
		if sender, ok := m.From.(*matchProc); ok {
			w.senders[seq] = sender
		}
	}
	for _, m := range w.turn {
		m.Last = w.lastEvent()
	}
	return w.readLastTurn()
}

func (w *world) readLastTurn() historysim.Outcome {
	return historysim.Outcome{Seq: w.lastEvent(), LastTurn: w.lastTurn, Messages: w.turn}
}

// lastEvent is the last message of events that is not purged, as the server compares it.
func (w *world) lastEvent() uint64 {
	if all := w.subjects[events]; len(all) > 0 {
		return all[len(all)-1].Seq
	}
	return 0
}

// request sends a batch of events to the owners. It may be lost, and comes once: only who asks repeats it. What one
// matching owner sends comes in its order, as over one connection.
func (w *world) request(m *historysim.Message) {
	if w.fault(lostWrites, 40) {
		return
	}
	for _, p := range w.living() {
		if m.From == nil {
			p.do(p.latency(), func() { p.owner.Request(m) })
			continue
		}
		p.sent[m.From] = append(p.sent[m.From], m)
		p.do(p.latency(), func() {
			all := p.sent[m.From]
			p.sent[m.From] = all[1:]
			p.owner.Request(all[0])
		})
	}
}

// fetch hands out the next messages of a subject that are filed at a place, or in a part of it; false if there is none yet.
func (w *world) fetch(subject int, at ids.Place, from uint64) ([]*historysim.Message, bool) {
	all := w.subjects[subject]
	if at != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(m *historysim.Message) bool { return !at.Has(m.Place) })
	}
	i, _ := slices.BinarySearchFunc(all, from, func(m *historysim.Message, seq uint64) int { return int(m.Seq) - int(seq) })
	if i == len(all) {
		return nil, false
	}
	return all[i:min(len(all), i+1+w.dice.IntN(4))], true
}

func (w *world) ends() (out historysim.Outcome) {
	out.Seq = uint64(len(w.log))
	for _, m := range w.log {
		switch {
		case m == nil:
		case !m.Event:
			out.Ends[m.Lane] = m.Seq
		default:
			out.Events = m.Seq
		}
	}
	return out
}

// readLog is what a takeover reads: the lanes behind the snapshot,
// and the events, in log order.
func (w *world) readLog(op *historysim.Op) (all []*historysim.Message) {
	for _, m := range w.log {
		switch {
		case m == nil || m.Purged:
		case m.Event && m.Last >= op.From && m.Seq <= op.To:
			all = append(all, m)
		case !m.Event && m.Seq > op.Starts[m.Lane]:
			all = append(all, m)
		}
	}
	return all
}

// count counts what lies behind a level of a lane.
func (w *world) count(op *historysim.Op) (out historysim.Outcome) {
	for _, m := range w.subjects[op.Lane] {
		if m.Seq <= op.From || !op.In.Has(m.Place) {
			continue
		}
		if out.All++; op.Place.Has(m.Place) {
			out.Own++
		}
	}
	return out
}

// unread looks for a task behind the lanes' levels. Of several stays it finds the last: the timer tells where
// it has fired to.
func (w *world) unread(op *historysim.Op) (out historysim.Outcome) {
	for _, m := range w.log {
		if m == nil || m.Event || m.Purged || m.Seq <= op.Levels.Of(historysim.Queue{Lane: m.Lane, Place: m.Place}) {
			continue
		}
		for i := range m.Tasks {
			if t := &m.Tasks[i]; t.ID == op.Search.ID && (out.Task == nil || t.Parkings > out.Task.Parkings) {
				out = historysim.Outcome{Task: t, Position: ids.NewPosition(m.Seq, m.Lane)}
			}
		}
	}
	return out
}

func (w *world) save(op *historysim.Op) historysim.Outcome {
	if op.Revision != w.revision {
		return historysim.Outcome{Result: historysim.Conflict}
	}
	w.check.saved(op.Checkpoint)
	w.revision++
	w.checkpoint = op.Checkpoint
	return historysim.Outcome{Revision: w.revision}
}

func (w *world) appendArchive(op *historysim.Op) historysim.Outcome {
	if op.Expected != uint64(len(w.archive)) {
		return historysim.Outcome{Result: historysim.Conflict}
	}
	all := append([]historysim.Task(nil), op.Tasks...)
	w.archive = append(w.archive, all)
	for i := range all {
		w.check.archived(&all[i])
		w.archived[all[i].ID] = &all[i]
	}
	return historysim.Outcome{Seq: uint64(len(w.archive))}
}

func (w *world) readArchive(from uint64) historysim.Outcome {
	out := historysim.Outcome{Seq: uint64(len(w.archive))}
	for seq := from; seq <= out.Seq; seq++ {
		for i := range w.archive[seq-1] {
			t := &w.archive[seq-1][i]
			out.Stays = append(out.Stays, historysim.Stay{ID: t.ID, Parkings: t.Parkings})
		}
	}
	return out
}

// purge removes what an owner says that the log may forget.
func (w *world) purge(p *proc, levels historysim.Levels) {
	for i := range w.subjects {
		var kept []*historysim.Message
		for _, m := range w.subjects[i] {
			last, upTo := m.Last, levels.Events
			if !m.Event {
				last, upTo = m.Seq, levels.PurgeTo(historysim.Queue{Lane: m.Lane, Place: m.Place})
			}
			if last > upTo {
				kept = append(kept, m)
				continue
			}
			m.Purged = true
			w.check.purged(p, m)
		}
		w.subjects[i] = kept
	}
}
