package caps

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var mail, bulk = Tasklist{"shop", "mail"}, Tasklist{"shop", "bulk"}

func (b *Book) want(t *testing.T, what string, of Tasklist, n int64) {
	t.Helper()
	if got := b.Queued(of); got != n {
		t.Errorf("%s: %d are queued, want %d", what, got, n)
	}
}

func TestARequestIsAdmittedWholeOrNot(t *testing.T) {
	b := NewBook()
	b.Report(0, map[Tasklist]int64{mail: 6, bulk: 1}, []uint64{0, 0, 0, 9})
	if full := b.Admit([]Tasks{{bulk, 5, 100}, {mail, 5, 10}}); full != 1 {
		t.Errorf("%d is full", full)
	}
	b.want(t, "refused", bulk, 1)
	if full := b.Admit([]Tasks{{bulk, 5, 100}, {mail, 4, 10}}); full != -1 {
		t.Errorf("%d is full", full)
	}
	b.want(t, "admitted", bulk, 6)
	if full := b.Admit([]Tasks{{mail, 1, 10}}); full != 0 {
		t.Errorf("%d is full", full)
	}
	if full := b.Admit([]Tasks{{mail, 1, 11}}); full != -1 {
		t.Errorf("%d is full, with a larger cap", full)
	}
	b.Dropped(Tasks{Of: mail, N: 5})
	b.want(t, "dropped", mail, 6)
}

// What was stored counts until a report contains it.
func TestWhatIsStoredCountsUntilItIsReported(t *testing.T) {
	b := NewBook()
	put := func(n int64, p int, lane ids.Lane, seq uint64) {
		t.Helper()
		if full := b.Admit([]Tasks{{mail, n, 1000}}); full != -1 {
			t.Fatal("full")
		}
		b.Stored(Tasks{Of: mail, N: n}, p, lane, seq)
	}
	put(1, 0, 3, 5)
	put(2, 0, 3, 5)
	put(4, 0, 3, 8)
	put(8, 0, 1, 7)
	put(16, 1, 3, 5)
	b.want(t, "stored", mail, 31)
	b.Report(0, nil, []uint64{0, 6, 0, 5})
	b.want(t, "up to 6 and 5", mail, 28)
	b.Report(0, map[Tasklist]int64{mail: 100}, []uint64{0, 7, 0, 7})
	b.want(t, "others, too", mail, 120)
	b.Report(1, map[Tasklist]int64{mail: -5}, nil) // of an owner that knows no caps
	b.want(t, "no levels", mail, 104)
	b.Report(0, nil, []uint64{0, 9, 9, 9})
	b.want(t, "all", mail, 0)
	if len(b.lists) != 0 {
		t.Errorf("%d are remembered", len(b.lists))
	}
}

// A partition that does not report for long costs no more memory, and no task is forgotten, nor counted forever.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	b := NewBook()
	const many = 20 * storedMax
	for i := range uint64(many) {
		if b.Admit([]Tasks{{mail, 1, many}}) != -1 {
			t.Fatalf("number %d is refused", i)
		}
		b.Stored(Tasks{Of: mail, N: 1}, 0, ids.Lane(i%3), i+1)
		if n := len(b.lists[mail].parts[0].stored); n > storedMax {
			t.Fatalf("%d are remembered", n)
		}
	}
	b.want(t, "none is reported", mail, many)
	b.Report(0, nil, []uint64{many, many, many, many})
	b.want(t, "all are", mail, 0)
}

// message is some tasks in the log, or on their way.
type message struct {
	lane  ids.Lane
	seq   uint64
	tasks int64
}

func sum(all []message) (n int64) {
	for _, m := range all {
		n += m.tasks
	}
	return n
}

// A partition, the reports of its owner, and a single frontend: what it believes is never less than what is queued, and
// never more than what was queued at the last report and what it has sent since; what it remembers is bounded.
func TestAgainstAModel(t *testing.T) {
	rng := testkit.Seed(t)
	for run := range 30 {
		most, merged := int64(1000), int64(0)
		if run%3 == 0 { // reports are rare, and neighbours become one
			most, merged = 100_000, 1000
		}
		b, seq := NewBook(), uint64(0)
		var underWay, unacked, unread []message
		memory, reported, since, twice := int64(0), int64(0), int64(0), int64(0)
		var read [ids.Lanes]uint64
		for range 2000 {
			switch k := rng.IntN(10); {
			case k < 5:
				n := 1 + rng.Int64N(20)
				full := b.Admit([]Tasks{{mail, n, most}})
				if sure := reported+since+twice+n <= most-merged; sure && full >= 0 {
					t.Fatalf("%d are refused: %d were reported, %d sent since", n, reported, since)
				}
				if full < 0 {
					underWay, since = append(underWay, message{lane: ids.Lane(1 + rng.IntN(3)), tasks: n}), since+n
				}
			case k < 7 && len(underWay) > 0:
				i := rng.IntN(len(underWay))
				m := underWay[i]
				underWay = slices.Delete(underWay, i, i+1)
				if rng.IntN(8) == 0 {
					b.Dropped(Tasks{Of: mail, N: m.tasks})
					since -= m.tasks
					continue
				}
				seq++
				m.seq = seq
				unread, unacked = append(unread, m), append(unacked, m)
			case k < 8 && len(unacked) > 0:
				m := unacked[0]
				unacked = unacked[1:]
				b.Stored(Tasks{Of: mail, N: m.tasks}, 0, m.lane, m.seq)
			case k == 8: // some of what is read ends
				memory -= min(memory, rng.Int64N(100))
			case run%3 > 0 || rng.IntN(50) == 0: // else reports are rare
				for lane := range read {
					read[lane] = max(read[lane], seq-rng.Uint64N(min(seq+1, 5)))
				}
				unread = slices.DeleteFunc(unread, func(m message) bool {
					if m.seq > read[m.lane] {
						return false
					}
					memory += m.tasks
					return true
				})
				reported, since = memory, sum(unread)+sum(underWay)
				b.Report(0, map[Tasklist]int64{mail: reported}, slices.Clone(read[:]))
			}
			twice = 0 // read, and not acknowledged
			for _, m := range unacked {
				if m.seq <= read[m.lane] {
					twice += m.tasks
				}
			}
			queued := memory + sum(unread) + sum(underWay)
			if got := b.Queued(mail); got < queued || got > reported+since+twice+merged || queued > most {
				t.Fatalf("%d are believed, %d are queued or under way", got, queued)
			}
			if l := b.lists[mail]; l != nil && l.parts[0] != nil && len(l.parts[0].stored) > storedMax {
				t.Fatalf("%d are remembered", len(l.parts[0].stored))
			}
		}
	}
}
