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

func TestLaneAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint64Range(0, 5).Draw(t, "ack")
		lane, m := NewLane(start), &model{floors: map[uint64]uint64{}, read: start}
		floor := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(m.seqs) == 0 || rapid.Bool().Draw(t, "read") {
				seq := m.read + rapid.Uint64Range(1, 4).Draw(t, "gap")
				floor += rapid.Uint64Range(0, 3).Draw(t, "events")
				n := rapid.IntRange(0, 3).Draw(t, "tasks")
				lane.Read(seq, n, floor)
				m.read, m.floors[seq] = seq, floor
				for range n {
					m.seqs = append(m.seqs, seq)
				}
			} else {
				i := rapid.IntRange(0, len(m.seqs)-1).Draw(t, "which")
				lane.Done(m.seqs[i])
				m.seqs = append(m.seqs[:i], m.seqs[i+1:]...)
			}
			wantAck, wantFloor := m.read, uint64(0)
			low, open := m.oldest()
			if open {
				wantAck, wantFloor = low-1, m.floors[low]
			}
			gotFloor, gotOpen := lane.Floor()
			if lane.AckLevel() != wantAck || lane.ReadLevel() != m.read || lane.Active() != len(m.seqs) || gotOpen != open || gotFloor != wantFloor {
				t.Fatalf("ack %d want %d, read %d want %d, active %d want %d, floor %d want %d",
					lane.AckLevel(), wantAck, lane.ReadLevel(), m.read, lane.Active(), len(m.seqs), gotFloor, wantFloor)
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
	lane.Read(1, 1, 0)
	lane.Done(1)
	lane.Done(1)
}
