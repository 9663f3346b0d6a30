package window

import (
	"testing"

	"pgregory.net/rapid"
)

// model is the dumb second implementation: every task ever read.
type model struct {
	seqs   []uint64 // of each task not done
	floors map[uint64]uint64
	read   uint64
}

func (m *model) oldest() (uint64, bool) {
	var low uint64
	for _, s := range m.seqs {
		if low == 0 || s < low {
			low = s
		}
	}
	return low, low != 0
}

// floorBounds is the floor that the open messages need, and the lowest that any message
// from the oldest open one on has had: a lane may keep the floor of a finished message, never
// of one before.
func (m *model) floorBounds(oldest uint64) (low, high uint64) {
	low, high = 1<<62, 1<<62
	for _, seq := range m.seqs {
		high = min(high, m.floors[seq])
	}
	for seq, floor := range m.floors {
		if seq >= oldest {
			low = min(low, floor)
		}
	}
	return low, high
}

func TestLaneAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint64Range(0, 5).Draw(t, "ack")
		lane, m := NewLane(start), &model{floors: map[uint64]uint64{}, read: start}
		applied := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(m.seqs) == 0 || rapid.Bool().Draw(t, "read") {
				seq := m.read + rapid.Uint64Range(1, 4).Draw(t, "gap")
				applied += rapid.Uint64Range(0, 3).Draw(t, "events")
				floor := applied - min(applied, rapid.SampledFrom([]uint64{0, 0, 0, 1, 5}).Draw(t, "early cancel"))
				n := rapid.IntRange(0, 3).Draw(t, "tasks")
				lane.Read(seq, n, 100*n, floor, "")
				m.read, m.floors[seq] = seq, floor
				for range n {
					m.seqs = append(m.seqs, seq)
				}
			} else {
				i := rapid.IntRange(0, len(m.seqs)-1).Draw(t, "which")
				lane.Done(m.seqs[i])
				m.seqs = append(m.seqs[:i], m.seqs[i+1:]...)
			}
			wantAck, lowFloor, highFloor := m.read, uint64(0), uint64(0)
			low, open := m.oldest()
			if open {
				wantAck = low - 1
				lowFloor, highFloor = m.floorBounds(low)
			}
			gotFloor, gotOpen := lane.Floor()
			if lane.AckLevel() != wantAck || lane.ReadLevel() != m.read || lane.Active() != len(m.seqs) || gotOpen != open || gotFloor < lowFloor || gotFloor > highFloor {
				t.Fatalf("ack %d want %d, read %d want %d, active %d want %d, floor %d want %d to %d",
					lane.AckLevel(), wantAck, lane.ReadLevel(), m.read, lane.Active(), len(m.seqs), gotFloor, lowFloor, highFloor)
			}
		}
	})
}

func TestDoneTwicePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	lane := NewLane(0)
	lane.Read(1, 1, 100, 0, "")
	lane.Done(1)
	lane.Done(1)
}
