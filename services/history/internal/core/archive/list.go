package archive

import (
	"bytes"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Listing goes through the tasks of a domain, the newest first. It says which span must be read next, and takes what
// lies there. The spans of a level contain those of the level below.
type Listing struct {
	// Before is the first fingerprint that is not listed.
	Before    uint64
	partition int
	spans     []Key   // not read yet, the newest first
	places    []Place // not taken yet, the newest first
	taken     uint64  // all places from this fingerprint on are taken
}

// NewListing begins before a task of any partition.
func NewListing(before ids.TaskID, partition int) *Listing {
	first := sort.Search(math.MaxInt, func(n int) bool {
		id := firstOf(uint64(n), partition)
		return bytes.Compare(id[:], before[:]) >= 0
	})
	return &Listing{Before: uint64(first), partition: partition, taken: math.MaxUint64}
}

// firstOf is the first id of a partition that has a fingerprint.
func firstOf(fingerprint uint64, partition int) ids.TaskID {
	return ids.NewTaskID(time.UnixMilli(int64(fingerprint>>16)), partition, fingerprint<<48)
}

// end is the first fingerprint behind a span.
func (k Key) end() uint64 { return uint64((k.Span+1)*spanMS[k.Level]) << 16 }

// AddSpan takes a span that has pages.
func (l *Listing) AddSpan(k Key) {
	if begin := uint64(k.Span*spanMS[k.Level]) << 16; begin < l.Before {
		at := sort.Search(len(l.spans), func(i int) bool { return l.spans[i].end() <= k.end() })
		l.spans = slices.Insert(l.spans, at, k)
	}
}

// Add takes places of the tail, or of a span.
func (l *Listing) Add(places []Place) {
	l.places = append(l.places, places...)
	slices.SortFunc(l.places, func(a, b Place) int { return b.compare(a) })
	l.places = slices.Compact(l.places) // a page that was written twice
}

// Take takes about n places in a few messages that come before all that was not read. Those of one fingerprint come
// together. In all, no more may be asked for than Index.Newest was.
func (l *Listing) Take(n, messages int) (some []Place) {
	unread := uint64(0)
	if len(l.spans) > 0 {
		unread = l.spans[0].end()
	}
	l.taken = min(l.taken, unread)
	seqs := map[uint64]bool{}
	for i, p := range l.places {
		seqs[p.Seq] = true
		if p.Fingerprint < unread || i > 0 && p.Fingerprint != l.taken && (i >= n || len(seqs) > messages) {
			break
		}
		some, l.taken = l.places[:i+1], p.Fingerprint
	}
	l.places = l.places[len(some):]
	return some
}

// NextSpan is the span that must be read next; false = all are read.
func (l *Listing) NextSpan() (next Key, more bool) {
	if len(l.spans) > 0 {
		next, more, l.spans = l.spans[0], true, l.spans[1:]
	}
	return next, more
}

// Taken is the id where a listing goes on that ends after the last Take: tasks with this id or a later one were taken.
func (l *Listing) Taken() ids.TaskID { return firstOf(l.taken, l.partition) }
