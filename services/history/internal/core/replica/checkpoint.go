package replica

import (
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Check tells whether the stores are at least as long as when the checkpoint was made. One
// that is not has lost what was accepted: it was restored from a backup, or its disk lied.
func (cp *Checkpoint) Check(log, timer, archive uint64) error {
	read := cp.Floor
	for i := range cp.Read {
		read = max(read, cp.Read[i], cp.Ack[i])
	}
	for _, q := range cp.Queues {
		read = max(read, q.Read, q.Last)
	}
	for _, store := range [...]struct {
		name      string
		ends, had uint64
	}{{"log", log, read}, {"timer store", timer, cp.TimerSeq}, {"archive", archive, cp.ArchiveSeq}} {
		if store.ends < store.had {
			return fmt.Errorf("the %s ends at %d, but the checkpoint has seen it up to %d: it was restored from an older copy, "+
				"or has lost its tail; restore all stores of this partition together, or remove its checkpoint to accept the loss",
				store.name, store.ends, store.had)
		}
	}
	return nil
}

// Checkpoint tells where the replica stands. Until a takeover is over that is where
// it began: a save then only keeps the lease.
func (r *Replica) Checkpoint() Checkpoint {
	if r.replay != nil {
		return r.base
	}
	levels := r.UnreadLevels("")
	if len(r.held) == 0 {
		// A held stay has been read and has sent nothing yet. What the stores hold ahead of that would be forgotten with it.
		if len(r.parkedTail) == 0 {
			r.park.mark(levels)
		}
		if len(r.archivedTail) == 0 {
			r.archive.mark(levels)
		}
	}
	cp := Checkpoint{
		Floor:  r.floor(),
		Parked: r.park.covered, TimerSeq: r.park.seq, Archived: r.archive.covered, ArchiveSeq: r.archive.seq,
	}
	for i, l := range r.lanes {
		cp.Ack[i], cp.Read[i] = l.AckLevel(), l.ReadLevel()
	}
	cp.PendingSince, cp.Fences, cp.Queues = r.pendingSince(), r.fencesUpTo(cp.Floor), r.queueCursors()
	return cp
}

// pendingSince is the time of the oldest command that is not carried out, 0 = there is none.
func (r *Replica) pendingSince() (oldest int64) {
	note := func(at int64) {
		if oldest == 0 || at < oldest {
			oldest = at
		}
	}
	for _, w := range r.early.byID {
		for _, h := range w.waiting {
			if h.command() {
				note(h.at)
				break
			}
		}
	}
	for _, e := range r.pinned {
		switch {
		case e.State.Finished():
			note(e.FinishedAt)
		case e.State == taskstate.Waiting:
			note(e.arrivedAt)
		}
	}
	return oldest
}

// floor is the last event that concerns nothing that is not done.
func (r *Replica) floor() uint64 {
	floor := r.eventAt
	for _, l := range r.lanes {
		if f, ok := l.Floor(); ok {
			floor = min(floor, f)
		}
	}
	for _, q := range r.queues {
		if f, ok := q.window.Floor(); ok {
			floor = min(floor, f)
		}
	}
	for _, w := range r.early.byID {
		floor = min(floor, w.waiting[0].seq-1)
	}
	for _, e := range r.pinned {
		floor = min(floor, e.pin)
	}
	return floor
}

// meter counts the events, and their bytes, behind any level: what a takeover would read.
type meter struct {
	events, bytes uint64
	// samples are taken after so many events each, oldest first.
	every   uint64
	samples []sample
}

type sample struct{ seq, events, bytes uint64 }

// samplesMax bounds the samples; past it every second one is dropped.
const samplesMax = 4096

func (m *meter) add(seq uint64, events, bytes int) {
	m.events += uint64(events)
	m.bytes += uint64(bytes)
	if n := len(m.samples); n == 0 || m.events-m.samples[n-1].events >= m.every {
		if n >= samplesMax {
			for i := range n / 2 {
				m.samples[i] = m.samples[2*i]
			}
			m.samples = m.samples[:n/2]
		}
		m.samples = append(m.samples, sample{seq, m.events, m.bytes})
	}
}

// behind is how many events and bytes lie behind a level, give or take a sample.
func (m *meter) behind(level uint64) (events, bytes uint64) {
	first := m.first(level)
	if first == len(m.samples) {
		return 0, 0
	}
	m.samples = m.samples[max(0, first-1):] // the level never falls by much
	s := m.samples[0]
	return m.events - s.events, m.bytes - s.bytes
}

// first is the index of the first sample behind level.
func (m *meter) first(level uint64) int {
	lo, hi := 0, len(m.samples)
	for lo < hi {
		if mid := (lo + hi) / 2; m.samples[mid].seq > level {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// half is the level at the middle of the events behind a level.
func (m *meter) half() uint64 {
	if len(m.samples) == 0 {
		return 0
	}
	return m.samples[len(m.samples)/2].seq
}

// ReadLevels are how far the lanes are read.
func (r *Replica) ReadLevels() (levels [ids.Lanes]uint64) {
	for i, l := range r.lanes {
		levels[i] = l.ReadLevel()
	}
	return levels
}

// EventAt is the last event read.
func (r *Replica) EventAt() uint64 { return r.eventAt }
