package due

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// handle names an entry of the slab.
type handle uint32

// place says where an entry is: its position in the heap, or one of the below.
type place int32

const (
	// placeFree: the slot is unused.
	placeFree place = -1 - iota
	// placeLate: due by the round's instant, but written after it began.
	placeLate
	// placeChosen: in the chunk that is being stored.
	placeChosen
	// placeLoading: read before all of its bucket was, and perhaps fired.
	placeLoading
)

// entry is the index of one waiting task: 56 bytes without pointers, so that
// millions of them cost the garbage collector nothing.
type entry struct {
	id ids.TaskID
	// dueMS, seq and index are the key that it fires under. See Table.record.
	dueMS    int64
	seq      uint64
	index    uint32
	parkings uint32
	group    groupHandle
	bucket   int32
	bytes    uint32
	place    place
}

func (e *entry) key() Key { return Key{DueMS: e.dueMS, Seq: e.seq, Index: e.index} }

func (e *entry) setKey(k Key) { e.dueMS, e.seq, e.index = k.DueMS, k.Seq, k.Index }

const pageEntries = 4096

// slab holds the entries in pages, so that growth copies nothing.
type slab struct {
	pages []*[pageEntries]entry
	free  []handle
	// size is how many slots were ever handed out.
	size uint32
}

func (s *slab) at(h handle) *entry { return &s.pages[h/pageEntries][h%pageEntries] }

func (s *slab) idOf(h handle) ids.TaskID { return s.at(h).id }

func (s *slab) add(e entry) handle {
	var h handle
	if n := len(s.free); n > 0 {
		h, s.free = s.free[n-1], s.free[:n-1]
	} else {
		h = handle(s.size)
		if s.size%pageEntries == 0 {
			s.pages = append(s.pages, new([pageEntries]entry))
		}
		s.size++
	}
	*s.at(h) = e
	return h
}

func (s *slab) remove(h handle) {
	*s.at(h) = entry{place: placeFree}
	s.free = append(s.free, h)
}
