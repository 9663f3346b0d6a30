package doctor

import (
	"encoding/binary"
	"math"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// index follows the archive's messages, and finds tasks that a mark says are in the index and that no page has. It holds what is behind
// the last mark only.
type index struct {
	open map[place][]ids.TaskID
}

// place is how a page names a task: its message, and parts of its id.
type place struct {
	seq         uint64
	fingerprint uint64
}

// gap is a task that is not in the index.
type gap struct {
	id  ids.TaskID
	seq uint64
}

func newIndex() index { return index{open: map[place][]ids.TaskID{}} }

// task takes a finished task of a message.
func (x *index) task(seq uint64, id ids.TaskID) {
	at := place{seq, binary.BigEndian.Uint64(id[:8])&^math.MaxUint16 | uint64(binary.BigEndian.Uint16(id[8:]))}
	x.open[at] = append(x.open[at], id)
}

// page takes a page of the index; false = its columns do not fit each other.
func (x *index) page(p *logv1.ArchivePage) bool {
	if len(p.Fingerprints)%8 != 0 || len(p.Offsets)*8 != len(p.Fingerprints)*2 {
		return false
	}
	for i := range len(p.Fingerprints) / 8 {
		delete(x.open, place{p.Base + uint64(binary.BigEndian.Uint16(p.Offsets[2*i:])), binary.BigEndian.Uint64(p.Fingerprints[8*i:])})
	}
	return true
}

// mark takes the mark at a sequence: all that was filed before is in pages. It returns what is not.
func (x *index) mark(seq uint64) (gaps []gap) {
	for at, all := range x.open {
		if at.seq >= seq {
			continue
		}
		for _, id := range all {
			gaps = append(gaps, gap{id, at.seq})
		}
		delete(x.open, at)
	}
	return gaps
}
