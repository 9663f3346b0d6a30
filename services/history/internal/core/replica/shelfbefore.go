package replica

import (
	"bytes"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// A task may have left the shelf, ended, and come back by a redrive, in events that are not read so far. So a stay is held until it is known that the one
// before it is on no page.

// mayHaveBefore tells whether the stay before e may be on the page, which has not been looked at for it.
func (r *Replica) mayHaveBefore(p *page, e *Entry) bool {
	at := e.Before
	return p.away && at.Lane() == ids.LaneKeyed && p.key.domain == e.Domain && p.first.seq <= at.Seq() && at.Seq() <= p.last.seq &&
		bytes.Compare(p.lowest[:], e.ID[:]) <= 0 && bytes.Compare(e.ID[:], p.highest[:]) <= 0 && !slices.Contains(r.notOn[e], p.seq)
}

// wantBefore has the pages read that may have the stay before e, which comes after that has ended, and tells whether there are any.
func (r *Replica) wantBefore(e *Entry) (some bool) {
	for _, p := range r.pages {
		if r.mayHaveBefore(p, e) {
			r.wantPage(p)
			some = true
		}
	}
	return some
}

// looksForBefore tells whether a page is to be read that may have the stay before e.
func (r *Replica) looksForBefore(e *Entry) bool {
	for _, p := range r.pages {
		if p.wanted && r.mayHaveBefore(p, e) {
			return true
		}
	}
	return false
}

// heldFor are the stays that are held until a page has been looked at, which does not have the ones before them.
func (r *Replica) heldFor(p *page, on map[ids.TaskID]bool) (all []ids.TaskID) {
	for id, held := range r.held {
		if on[id] || r.tasks[id] != nil {
			continue
		}
		for _, e := range held {
			if r.mayHaveBefore(p, e) {
				all = append(all, id)
				if r.notOn == nil {
					r.notOn = make(map[*Entry][]uint64)
				}
				r.notOn[e] = append(r.notOn[e], p.seq)
			}
		}
	}
	slices.SortFunc(all, func(a, b ids.TaskID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(all)
}
