package due

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// recent remembers the stays that were fired recently, so that a second record of
// one, written by a history owner that did not know better, is not fired again,
// and so that history can find what it has not read yet.
type recent struct {
	keepMS int64
	most   int
	groups *groups
	// last finds the last stay of a task that was fired. Its handle is its place in the ring.
	last index
	// ring has room for most stays and one page more, 40 bytes each. They are in the order of their firing, n of them from first on. A page without stays is nil.
	ring     []*[pageStays]firedStay
	first, n int
}

// pageStays is how many stays share a page. A page that was left is given back.
const pageStays = 256

type firedStay struct {
	id       ids.TaskID
	parkings uint32
	group    groupHandle
	atMS     int64
	// logSeq is where it lies in the history log; 0 = not known.
	logSeq uint64
}

func newRecent(keepMS int64, most int, g *groups) *recent {
	r := &recent{keepMS: keepMS, most: most, groups: g, ring: make([]*[pageStays]firedStay, most/pageStays+2)}
	r.last.of = r
	return r
}

func (r *recent) at(h handle) *firedStay { return &r.ring[h/pageStays][h%pageStays] }

func (r *recent) idOf(h handle) ids.TaskID { return r.at(h).id }

// place is where the stay lies that was fired after so many others that are remembered.
func (r *recent) place(after int) handle {
	return handle((r.first + after) % (len(r.ring) * pageStays))
}

func (r *recent) add(stay firedStay) {
	if r.most == 0 {
		return
	}
	r.expire(stay.atMS)
	if !r.hasRoom() {
		r.dropOldest()
	}
	r.groups.hold(stay.group)
	if before, ok := r.last.find(stay.id); ok {
		r.last.remove(before)
	}
	h := r.place(r.n)
	if page := &r.ring[h/pageStays]; *page == nil {
		*page = new([pageStays]firedStay)
	}
	*r.at(h) = stay
	r.last.add(h)
	r.n++
}

// hasRoom reports whether another stay puts none out of memory.
func (r *recent) hasRoom() bool { return r.n < r.most }

// remember adds a stay that the cursor covers, so that history can find it.
func (r *recent) remember(id ids.TaskID, parkings uint32, g Group, atMS int64) {
	h := r.groups.take(g)
	r.add(firedStay{id: id, parkings: parkings, group: h, atMS: atMS})
	r.groups.drop(h)
}

// find returns the last stay of id that was fired, or nil. It is valid until the
// next change.
func (r *recent) find(id ids.TaskID) *firedStay {
	if h, ok := r.last.find(id); ok {
		return r.at(h)
	}
	return nil
}

// has tells whether this stay of id, or a later one, was fired recently.
func (r *recent) has(id ids.TaskID, parkings uint32) bool {
	fired := r.find(id)
	return fired != nil && parkings <= fired.parkings
}

func (r *recent) expire(nowMS int64) {
	for r.n > 0 && r.at(r.place(0)).atMS+r.keepMS < nowMS {
		r.dropOldest()
	}
}

func (r *recent) dropOldest() {
	h := r.place(0)
	oldest := r.at(h)
	if last, ok := r.last.find(oldest.id); ok && last == h {
		r.last.remove(h)
	}
	r.groups.drop(oldest.group)
	r.first, r.n = int(r.place(1)), r.n-1
	if r.n == 0 || r.first%pageStays == 0 {
		r.ring[h/pageStays] = nil
	}
}
