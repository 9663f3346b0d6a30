package archive

import (
	"cmp"
	"container/list"
	"slices"
)

// Index is what a reader knows of the archive: the pages of some spans, and the tail. It forgets the spans that were
// not asked for the longest when it is full.
//
// The mark is the sequence up to which everything filed is in pages. A span that was read after a mark was seen is
// whole up to that mark, and behind the mark everything is in the tail: so what is in neither is not in the archive.
type Index struct {
	bytesMax int
	bytes    int
	spans    map[Key]*list.Element // of *span
	used     *list.List            // most recently used first

	mark  uint64
	tail  map[Filed]uint64
	tailN uint64 // the last sequence of the tail that was read
}

type span struct {
	key   Key
	runs  []run
	last  uint64 // the last page read
	whole uint64 // up to which mark it is known whole
	known bool
	bytes int
}

// spanBytes and tableBytes are about what a span and a page cost beside their columns.
const (
	spanBytes  = 256
	tableBytes = 64
)

// NewIndex makes an empty index of at most about bytesMax bytes.
func NewIndex(bytesMax int) *Index {
	return &Index{bytesMax: bytesMax, spans: map[Key]*list.Element{}, used: list.New(), tail: map[Filed]uint64{}}
}

// Find appends the sequences of messages that may hold the task, the latest first. Seqs must be empty. Whole tells that
// all of the task's spans are known up to the mark: if the tail was read too, the task is in one of these messages or
// not in the archive.
func (x *Index) Find(task Filed, seqs []uint64) (_ []uint64, whole bool) {
	if seq, ok := x.tail[task]; ok {
		seqs = append(seqs, seq)
	}
	fingerprint := Fingerprint(task.ID)
	whole = true
	for level := range Levels {
		e := x.spans[KeyOf(task, level)]
		if e == nil {
			whole = false
			continue
		}
		x.used.MoveToFront(e)
		s := e.Value.(*span)
		whole = whole && s.known && s.whole >= x.mark
		for _, r := range s.runs {
			seqs = r.Find(fingerprint, seqs)
		}
	}
	slices.SortFunc(seqs, func(a, b uint64) int { return cmp.Compare(b, a) })
	return seqs, whole
}

// Mark takes the sequence of the archive's last mark. Messages of the tail before it are in pages now.
func (x *Index) Mark(seq uint64) {
	if seq <= x.mark {
		return
	}
	x.mark = seq
	x.tailN = max(x.tailN, seq)
	for task, at := range x.tail {
		if at <= seq {
			delete(x.tail, task)
		}
	}
}

// TailFrom is the sequence from which the tail is to be read.
func (x *Index) TailFrom() uint64 { return x.tailN + 1 }

// AddTail takes a message behind the mark; tasks is empty if it holds none. It leaves out a message that another has read
// before.
func (x *Index) AddTail(seq uint64, tasks []Filed) {
	if seq <= x.tailN {
		return
	}
	x.tailN = seq
	for _, task := range tasks {
		x.tail[task] = seq
	}
}

// Wanted tells whether a span's pages must be read, and from which sequence, before it is whole up to the mark that is
// known now.
func (x *Index) Wanted(k Key) (from, mark uint64, wanted bool) {
	s := x.span(k)
	return s.last + 1, x.mark, !s.known || s.whole < x.mark
}

// PageAt is a page and its sequence.
type PageAt struct {
	Seq uint64
	Table
}

// AddPages takes pages of a span that were read from sequence from on, as Wanted said. Ended tells that there were no
// more: then the span is whole up to the mark that Wanted said. It takes nothing if the span was forgotten meanwhile.
func (x *Index) AddPages(k Key, from uint64, pages []PageAt, mark uint64, ended bool) {
	s := x.span(k)
	if from > s.last+1 {
		return
	}
	bytes := 0
	for _, p := range pages {
		if p.Seq <= s.last {
			continue // read before, by another
		}
		s.last = p.Seq
		s.runs = appendRun(s.runs, p.Table)
		bytes += tableBytes + len(p.Fingerprints) + len(p.Offsets)
	}
	if ended {
		s.known, s.whole = true, max(s.whole, mark)
	}
	x.grow(s, bytes)
}

// TailOf is where a domain's tasks in the tail are, before a fingerprint, and the mark that the tail follows.
func (x *Index) TailOf(domain string, before uint64) (places []Place, mark uint64) {
	for task, seq := range x.tail {
		if p := (Place{Fingerprint(task.ID), seq}); task.Domain == domain && p.Fingerprint < before {
			places = append(places, p)
		}
	}
	return places, x.mark
}

// Newest is where the n newest tasks of a span before a fingerprint are. Whole: all of its pages up to a mark are known.
func (x *Index) Newest(k Key, mark, before uint64, n int) (places []Place, whole bool) {
	s := x.span(k)
	for _, r := range s.runs {
		places = append(places, r.newest(before, n)...)
	}
	return places, s.known && s.whole >= mark
}

func (x *Index) span(k Key) *span {
	if e := x.spans[k]; e != nil {
		x.used.MoveToFront(e)
		return e.Value.(*span)
	}
	s := &span{key: k}
	x.spans[k] = x.used.PushFront(s)
	x.grow(s, spanBytes)
	return s
}

// grow counts bytes and makes room, but keeps the span that grows.
func (x *Index) grow(s *span, bytes int) {
	s.bytes += bytes
	x.bytes += bytes
	for x.bytes > x.bytesMax {
		e := x.used.Back()
		old := e.Value.(*span)
		if old == s {
			return
		}
		x.used.Remove(e)
		delete(x.spans, old.key)
		x.bytes -= old.bytes
	}
}
