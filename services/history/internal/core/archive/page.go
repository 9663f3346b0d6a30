package archive

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Levels is how many lengths of spans there are. A task is in a page of the shortest
// span that has enough tasks to be worth a page, so that tasks that finish together
// but were created over days do not cost a page each. A reader looks at all levels.
const Levels = 3

// spanMS is the length of each level's spans: 10 s, 10 min, 8 h.
var spanMS = [Levels]int64{10_000, 600_000, 28_800_000}

const (
	// pageTasksMin is how many tasks a span must have to get a page, below the last level.
	pageTasksMin = 64
	// pageTasksMax bounds a page to about 48 KiB.
	pageTasksMax = 8192

	fingerprintBytes = 4
	offsetBytes      = 2
)

// Key names a span of creation time.
type Key struct {
	Level int
	// Span counts spans of this level since the Unix epoch.
	Span int64
}

// KeyOf is the span of a level that a task was created in.
func KeyOf(id ids.TaskID, level int) Key {
	return Key{level, id.Time().UnixMilli() / spanMS[level]}
}

// Entry says which message holds a task.
type Entry struct {
	ID         ids.TaskID
	Seq        uint64
	RetentionS int64
}

// Page is an index of tasks created in one span.
type Page struct {
	Key
	// RetentionS is the longest of its tasks.
	RetentionS int64
	Table
}

// Table is the search table of a page. Fingerprints ascend, 4 bytes each; beside
// each are 2 bytes: the distance of its message from Base.
type Table struct {
	Base         uint64
	Fingerprints []byte
	Offsets      []byte
}

// Fingerprint is what a page knows a task by: the end of its id, which is random.
func Fingerprint(id ids.TaskID) uint32 {
	return binary.BigEndian.Uint32(id[len(id)-fingerprintBytes:])
}

// Paginate makes the pages for entries, which it reorders.
func Paginate(entries []Entry) []Page {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Compare(binary.BigEndian.Uint64(a.ID[:8]), binary.BigEndian.Uint64(b.ID[:8]))
	})
	var pages []Page
	for level := range Levels {
		rest := entries[:0]
		for from := 0; from < len(entries); {
			key := KeyOf(entries[from].ID, level)
			to := from + 1
			for to < len(entries) && KeyOf(entries[to].ID, level) == key {
				to++
			}
			if to-from >= pageTasksMin || level == Levels-1 {
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

// appendPages makes as many pages of one span as its entries need: their messages
// must lie close enough for an offset, and a page is bounded.
func appendPages(pages []Page, key Key, entries []Entry) []Page {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && n < pageTasksMax && entries[n].Seq-entries[0].Seq <= math.MaxUint16 {
			n++
		}
		pages = append(pages, page(key, entries[:n]))
		entries = entries[n:]
	}
	return pages
}

func page(key Key, entries []Entry) Page {
	p := Page{Key: key, Table: Table{
		Base:         entries[0].Seq,
		Fingerprints: make([]byte, 0, len(entries)*fingerprintBytes),
		Offsets:      make([]byte, 0, len(entries)*offsetBytes),
	}}
	packed := make([]uint64, len(entries)) // fingerprint and offset sort as one number
	for i, e := range entries {
		packed[i] = uint64(Fingerprint(e.ID))<<16 | (e.Seq - p.Base)
		p.RetentionS = max(p.RetentionS, e.RetentionS)
	}
	slices.Sort(packed)
	for _, v := range packed {
		p.Fingerprints = binary.BigEndian.AppendUint32(p.Fingerprints, uint32(v>>16))
		p.Offsets = binary.BigEndian.AppendUint16(p.Offsets, uint16(v))
	}
	return p
}

// WellFormed tells whether the two columns fit each other.
func (t Table) WellFormed() bool {
	return len(t.Fingerprints)%fingerprintBytes == 0 && len(t.Offsets)*fingerprintBytes == len(t.Fingerprints)*offsetBytes
}

// Find appends the sequences of the messages that may hold a task of this fingerprint,
// as they lie.
func (t Table) Find(fingerprint uint32, seqs []uint64) []uint64 {
	if !t.WellFormed() {
		return seqs
	}
	low, high := 0, t.entries()
	for low < high {
		middle := (low + high) / 2
		if t.at(middle) < fingerprint {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for ; low < t.entries() && t.at(low) == fingerprint; low++ {
		seqs = append(seqs, t.message(low))
	}
	return seqs
}

func (t Table) at(i int) uint32 { return binary.BigEndian.Uint32(t.Fingerprints[i*fingerprintBytes:]) }

func (t Table) entries() int { return len(t.Fingerprints) / fingerprintBytes }

// message is the sequence of the message that an entry names.
func (t Table) message(i int) uint64 {
	return t.Base + uint64(binary.BigEndian.Uint16(t.Offsets[i*offsetBytes:]))
}
