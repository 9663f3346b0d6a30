package doctor

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// index follows the archive's messages, and finds tasks that a mark says are in the index and that no page has. It holds what is behind
// the last mark only.
type index struct {
	open map[place][]ids.TaskID
	// pages are the subjects of the pages since the last mark.
	pages map[string]bool
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

func newIndex() index { return index{map[place][]ids.TaskID{}, map[string]bool{}} }

// task takes a finished task of a message.
func (x *index) task(seq uint64, id ids.TaskID) {
	at := place{seq, binary.BigEndian.Uint64(id[:8])&^math.MaxUint16 | uint64(binary.BigEndian.Uint16(id[8:]))}
	x.open[at] = append(x.open[at], id)
}

// page takes a page of the index; false = its columns do not fit each other.
func (x *index) page(subject string, p *logv1.ArchivePage) bool {
	x.pages[subject] = true
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

// hidden takes the mark, too. It returns a page that a list does not find, since the one of the longer span around it is not there; "" =
// there is none.
func (x *index) hidden() (page string) {
	for subject := range x.pages {
		around := subject[:strings.LastIndexByte(subject, '.')]
		if strings.Count(subject, ".") > topology.ArchivePageDots && !x.pages[around] {
			page = max(page, subject)
		}
	}
	clear(x.pages)
	return page
}
