package archive

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Levels is how many lengths of spans there are. A task is in a page of the shortest span that has enough tasks to be
// worth a page, so that tasks that finish together but were created over days do not cost a page each. A reader looks
// at all levels.
const Levels = 3

// spanMS is the length of each level's spans: 10 s, 10 min, 8 h.
var spanMS = [Levels]int64{10_000, 600_000, 28_800_000}

// pageTasksMin is how many tasks of a domain a span of each level must have to get a page.
var pageTasksMin = [Levels]int{256, 64, 0}

const (
	// pageTasksMax bounds a page to about 80 KiB.
	pageTasksMax = 8192

	fingerprintBytes = 8
	offsetBytes      = 2
)

// Key names the tasks of a domain that were created in one span.
type Key struct {
	Domain string
	Level  int
	// Span counts spans of this level since the Unix epoch.
	Span int64
}

// KeyOf is the span of a level that a task was created in.
func KeyOf(t Filed, level int) Key {
	return Key{t.Domain, level, t.ID.Time().UnixMilli() / spanMS[level]}
}

// Path is the spans that contain this one, the longest first, and this one.
func (k Key) Path() (spans []int64) {
	for level := Levels - 1; level >= k.Level; level-- {
		spans = append(spans, k.Span*spanMS[k.Level]/spanMS[level])
	}
	return spans
}

// Entry says which message holds a task.
type Entry struct {
	Place
	RetentionS int64
	Domain     string
}

// Place is a message that may hold a task of a fingerprint.
type Place struct{ Fingerprint, Seq uint64 }

func (p Place) compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Fingerprint, o.Fingerprint), cmp.Compare(p.Seq, o.Seq))
}

// Page is an index of tasks created in one span.
type Page struct {
	Key
	// RetentionS is the longest of its tasks.
	RetentionS int64
	Table
}

// Table is the search table of a page. Fingerprints ascend, 8 bytes each; beside each are 2 bytes: the distance of its
// message from Base.
type Table struct {
	Base         uint64
	Fingerprints []byte
	Offsets      []byte
}

// Fingerprint is what a page knows a task by: the ms of its creation, and the first 16 of its random bits. Fingerprints
// of a partition are in the order of its ids.
func Fingerprint(id ids.TaskID) uint64 {
	return binary.BigEndian.Uint64(id[:8])&^math.MaxUint16 | uint64(binary.BigEndian.Uint16(id[8:]))
}

// Paginate makes the pages for entries, which it reorders. Tasks of a domain that are kept for different times are on different pages, since a page expires with the
// last of its tasks. With a page of a span goes one of the longer span around it,
// which is empty if it has no tasks: so a list comes from the longer spans to the shorter ones.
func Paginate(entries []Entry) (pages []Page) {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.RetentionS, b.RetentionS), a.compare(b.Place))
	})
	for from := 0; from < len(entries); {
		domain, keptS, to := entries[from].Domain, entries[from].RetentionS, from+1
		for to < len(entries) && entries[to].Domain == domain && entries[to].RetentionS == keptS {
			to++
		}
		begin := len(pages)
		pages = paginate(pages, domain, entries[from:to])
		for i := begin; i < len(pages); i++ {
			p := pages[i]
			around := Key{domain, p.Level + 1, p.Path()[max(0, Levels-2-p.Level)]}
			if p.Level < Levels-1 && !slices.ContainsFunc(pages[begin:], func(o Page) bool { return o.Key == around && o.RetentionS >= p.RetentionS }) {
				pages = append(pages, Page{Key: around, RetentionS: p.RetentionS})
			}
		}
		from = to
	}
	return pages
}

// paginate adds the pages of a domain that have tasks.
func paginate(pages []Page, domain string, entries []Entry) []Page {
	for level := range Levels {
		span := func(e Entry) int64 { return int64(e.Fingerprint>>16) / spanMS[level] }
		rest := entries[:0]
		for from := 0; from < len(entries); {
			key := Key{domain, level, span(entries[from])}
			to := from + 1
			for to < len(entries) && span(entries[to]) == key.Span {
				to++
			}
			if to-from >= pageTasksMin[level] {
				pages = appendPages(pages, key, entries[from:to])
			} else {
				rest = append(rest, entries[from:to]...) // never ahead of from
			}
			from = to
		}
		entries = rest
	}
	return pages
}

// appendPages makes as many pages of one span as its entries need: their messages must lie close enough for an offset,
// and a page is bounded.
func appendPages(pages []Page, key Key, entries []Entry) []Page {
	for len(entries) > 0 {
		n, base, last := 0, entries[0].Seq, entries[0].Seq
		for ; n < min(len(entries), pageTasksMax); n++ {
			first, behind := min(base, entries[n].Seq), max(last, entries[n].Seq)
			if behind-first > math.MaxUint16 {
				break
			}
			base, last = first, behind
		}
		p := Page{Key: key, Table: Table{Base: base, Fingerprints: make([]byte, 0, n*fingerprintBytes), Offsets: make([]byte, 0, n*offsetBytes)}}
		for _, e := range entries[:n] {
			p.Fingerprints = binary.BigEndian.AppendUint64(p.Fingerprints, e.Fingerprint)
			p.Offsets = binary.BigEndian.AppendUint16(p.Offsets, uint16(e.Seq-base))
			p.RetentionS = max(p.RetentionS, e.RetentionS)
		}
		pages, entries = append(pages, p), entries[n:]
	}
	return pages
}

// WellFormed tells whether the two columns fit each other.
func (t Table) WellFormed() bool {
	return len(t.Fingerprints)%fingerprintBytes == 0 && len(t.Offsets)*fingerprintBytes == len(t.Fingerprints)*offsetBytes
}

// Find appends the sequences of the messages that may hold a task of this fingerprint, as they lie.
func (t Table) Find(fingerprint uint64, seqs []uint64) []uint64 {
	if !t.WellFormed() {
		return seqs
	}
	first := sort.Search(t.entries(), func(i int) bool { return t.at(i) >= fingerprint })
	for ; first < t.entries() && t.at(first) == fingerprint; first++ {
		seqs = append(seqs, t.message(first))
	}
	return seqs
}

// newest is the last n places before a fingerprint, and those whose fingerprint is that of the first of them.
func (t Table) newest(before uint64, n int) (places []Place) {
	for i := sort.Search(t.entries(), func(i int) bool { return t.at(i) >= before }) - 1; i >= 0; i-- {
		p, last := Place{t.at(i), t.message(i)}, len(places)-1
		if len(places) >= n && p.Fingerprint != places[last].Fingerprint {
			break
		}
		if last < 0 || p != places[last] {
			places = append(places, p)
		}
	}
	return places
}

func (t Table) at(i int) uint64 { return binary.BigEndian.Uint64(t.Fingerprints[i*fingerprintBytes:]) }

func (t Table) entries() int { return len(t.Fingerprints) / fingerprintBytes }

// message is the sequence of the message that an entry names.
func (t Table) message(i int) uint64 {
	return t.Base + uint64(binary.BigEndian.Uint16(t.Offsets[i*offsetBytes:]))
}
