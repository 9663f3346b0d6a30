package caps

import (
	"slices"
	"strconv"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var mail = Queue{"shop", "mail", ""}

func (b *Book) want(t *testing.T, what string, of Queue, n int64) {
	t.Helper()
	testkit.Equal(t, what+": queued", b.Queued(of), n)
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
		if n := len(b.parts[0][mail].stored); n > storedMax {
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
				b.Report(0, map[Queue]int64{mail: reported}, slices.Clone(read[:]))
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
			if at := b.parts[0][mail]; at != nil && len(at.stored) > storedMax {
				t.Fatalf("%d are remembered", len(at.stored))
			}
		}
	}
}

// A group is counted for itself, beside its tasklist; a request is admitted if both have room.
func TestAGroupIsCountedBesideItsTasklist(t *testing.T) {
	b := NewBook()
	acme, other := Queue{"shop", "mail", "acme"}, Queue{"shop", "mail", "other"}
	b.Report(0, map[Queue]int64{mail: 8, acme: 5}, []uint64{0, 0, 0, 9})
	testkit.Equal(t, "is full", b.Admit([]Tasks{{mail, 1, 100}, {acme, 1, 5}}), 1)
	all := []Tasks{{mail, 4, 100}, {other, 3, 5}}
	testkit.Equal(t, "is full", b.Admit(all), -1)
	for _, one := range all {
		b.Stored(one, 0, 3, 10)
	}
	b.want(t, "stored", mail, 12)
	b.want(t, "stored", other, 3)
	b.want(t, "stored", acme, 5)
	b.Report(0, map[Queue]int64{mail: 3}, []uint64{0, 0, 0, 10})
	b.want(t, "none is named", other, 0)
	b.want(t, "none is named", acme, 0)
	if b.want(t, "named", mail, 3); b.groups != 0 || len(b.lists) != 1 || len(b.parts[0]) != 1 {
		t.Errorf("%d groups, %v, %v", b.groups, b.lists, b.parts)
	}
}

// More groups than are remembered are admitted uncounted, and forgotten when their answers come; tasklists are counted all the same.
func TestTheGroupsRememberedAreBounded(t *testing.T) {
	b := NewBook()
	group := func(i int) Queue { return Queue{"shop", "mail", strconv.Itoa(i)} }
	var sent []Tasks
	const many, extra = groupsMax - groupsMax/4, 50
	for i := range many + extra {
		all := []Tasks{{group(i), 1, 1}, {mail, 1, 2 * many}}
		if full := b.Admit(all); full != -1 {
			t.Fatalf("number %d: %d is full", i, full)
		}
		sent = append(sent, all...)
	}
	if b.groups != many || len(b.lists) != many+1 || sent[2*many].N != 0 {
		t.Errorf("%d groups, %d queues", b.groups, len(b.lists))
	}
	b.want(t, "all", mail, many+extra)
	b.Report(1, map[Queue]int64{group(many): 1, group(0): 7}, nil)
	b.want(t, "one for which there is no room", group(many), 0)
	b.want(t, "one that is remembered", group(0), 8)
	b.Report(1, nil, nil)
	for i, one := range sent {
		if i%3 == 0 {
			b.Dropped(one)
		} else {
			b.Stored(one, 0, 3, uint64(i+1))
		}
	}
	b.Report(0, nil, []uint64{0, 0, 0, uint64(len(sent))})
	if b.groups != 0 || len(b.lists) != 0 || len(b.parts[0]) != 0 || len(b.groupsOf) != 0 {
		t.Errorf("%d groups, %d queues are left", b.groups, len(b.lists))
	}
}

// One domain with groups without number leaves the others theirs (I14), and all of them together are bounded.
func TestI14_GroupsOfADomainLeaveRoomForOthers(t *testing.T) {
	b := NewBook()
	admit := func(domain string, n int) {
		for i := range n {
			if full := b.Admit([]Tasks{{Queue{domain, "mail", strconv.Itoa(i)}, 1, 1}}); full != -1 {
				t.Fatalf("%s: number %d is full", domain, i)
			}
		}
	}
	admit("flood", groupsMax)
	for _, domain := range []string{"a", "b", "c", "d", "e"} {
		admit(domain, groupsFew)
	}
	b.want(t, "one of a domain that has few", Queue{"a", "mail", "0"}, 1)
	if b.groups != groupsMax || b.groupsOf["a"] != groupsFew {
		t.Errorf("%d groups, %v", b.groups, b.groupsOf)
	}
}

// sent is tasks in a message of a partition.
type sent struct {
	Tasks
	part int
	seq  uint64
}

// Against a dumb model, with groups that fill beside their tasklist in several partitions: each number is the sum of what was reported last, what is
// stored behind that, and what is on its way.
func TestGroupsAgainstAModel(t *testing.T) {
	rng := testkit.Seed(t)
	queues := []Queue{mail, {"shop", "mail", "a"}, {"shop", "mail", "b"}, {"shop", "bulk", "a"}}
	for range 20 {
		b, seq := NewBook(), uint64(0)
		var underWay []Tasks
		var stored []sent
		var reported [3]map[Queue]int64
		var read [3]uint64
		for range 3000 {
			switch k := rng.IntN(8); {
			case k < 4:
				var all []Tasks
				for _, q := range queues {
					if rng.IntN(2) == 0 {
						all = append(all, Tasks{q, 1 + rng.Int64N(9), 200})
					}
				}
				if b.Admit(all) < 0 {
					underWay = append(underWay, all...)
				}
			case k < 7 && len(underWay) > 0:
				i := rng.IntN(len(underWay))
				one := underWay[i]
				underWay = slices.Delete(underWay, i, i+1)
				if rng.IntN(8) == 0 {
					b.Dropped(one)
					continue
				}
				seq++
				p := rng.IntN(len(reported))
				at := sent{one, p, max(1, seq-rng.Uint64N(min(seq, 4)))} // a report may have overtaken it
				if b.Stored(one, p, 3, at.seq); at.seq > read[p] {
					stored = append(stored, at)
				}
			default:
				p := rng.IntN(len(reported))
				read[p] = max(read[p], seq-rng.Uint64N(min(seq+1, 6)))
				reported[p] = map[Queue]int64{}
				for _, q := range queues {
					if rng.IntN(3) > 0 {
						reported[p][q] = rng.Int64N(60)
					}
				}
				stored = slices.DeleteFunc(stored, func(s sent) bool { return s.part == p && s.seq <= read[p] })
				b.Report(p, reported[p], []uint64{0, 0, 0, read[p]})
			}
			b.checkSums(t, queues, underWay, stored, reported[:])
		}
	}
}

// checkSums compares the book with what is on its way, stored behind the last reports, and in these.
func (b *Book) checkSums(t *testing.T, queues []Queue, underWay []Tasks, stored []sent, reported []map[Queue]int64) {
	t.Helper()
	want, groups := map[Queue]int64{}, map[Queue]bool{}
	note := func(of Queue, n int64) {
		if want[of] += n; of.Group != "" && n > 0 {
			groups[of] = true
		}
	}
	for _, one := range underWay {
		note(one.Of, one.N)
	}
	for _, s := range stored {
		note(s.Of, s.N)
	}
	for _, all := range reported {
		for of, n := range all {
			note(of, n)
		}
	}
	for _, q := range queues {
		b.want(t, "by the model", q, want[q])
	}
	if t.Failed() || b.groups != len(groups) {
		t.Fatalf("%d groups, want %d", b.groups, len(groups))
	}
}

// TestAKeyIsFull as long as the last report of its partition says so, for its domain alone.
func TestAKeyIsFull(t *testing.T) {
	var k Keys
	a := Key{"shop", "a"}
	testkit.Equal(t, "at first", k.Full(a), 0)
	k.Report(1, map[Key]int64{a: 1000})
	k.Report(2, map[Key]int64{{"shop", "b"}: 7})
	testkit.Equal(t, "as reported", k.Full(a), 1000)
	testkit.Equal(t, "another domain's", k.Full(Key{"bank", "a"}), 0)
	k.Report(2, nil)
	testkit.Equal(t, "after the report of another partition", k.Full(a), 1000)
	k.Report(1, nil)
	testkit.Equal(t, "with room", k.Full(a), 0)
}
