package backlog

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var mail, bulk = Tasklist{"shop", "mail"}, Tasklist{"shop", "bulk"}

// whole is all of a tasklist.
func whole(of Tasklist) Queue { return Queue{Tasklist: of} }

func some(tasks int64) Amount { return Amount{Tasks: tasks} }

func levels(own, shared uint64) func(ids.Place) uint64 {
	return func(at ids.Place) uint64 {
		if at == "" {
			return shared
		}
		return own
	}
}

func TestWhatIsReadIsForgotten(t *testing.T) {
	l := NewLane(NewCaps(map[Tasklist]int64{mail: 10}, nil, nil), 5)
	l.Add(5, whole(mail), "shop", some(100)) // read already
	l.Add(6, whole(mail), "shop", some(3))
	l.Add(6, whole(bulk), "shop", some(7)) // has no cap
	l.Add(7, whole(mail), "", some(2))
	l.Add(7, whole(mail), "", some(2))
	l.Add(8, whole(mail), "shop", some(0))
	l.Add(9, whole(mail), "shop", some(-3))
	l.Counted(9)
	l.Counted(4)
	l.Add(9, whole(mail), "shop", some(1)) // counted before
	if got := l.Tasks(whole(mail)); got != 7 || l.Tasks(whole(bulk)) != 0 || l.To() != 9 || l.Next() != 10 {
		t.Errorf("%d, %d, up to %d", got, l.Tasks(whole(bulk)), l.To())
	}
	l.Pass(levels(5, 7)) // the domain lags
	testkit.Equal(t, "with the shared ones read", l.Tasks(whole(mail)), 3)
	l.Pass(levels(6, 7))
	if got := l.Tasks(whole(mail)); got != 0 || len(l.lists) != 0 {
		t.Errorf("%d, with all read", got)
	}
}

// Tasks of one message are forgotten at once, and take one place. Where there are too many, two messages become one that is forgotten with the first.
func TestMessagesAreForgottenWhole(t *testing.T) {
	l := NewLane(NewCaps(map[Tasklist]int64{mail: 10}, nil, nil), 0)
	for seq := range uint64(4) {
		for range 2 {
			l.Add(seq+1, whole(mail), "shop", some(int64(seq+1)))
		}
	}
	q := l.lists[place{whole(mail), "shop"}]
	if len(q.spans) != 4 || q.Tasks != 20 {
		t.Fatalf("%+v", q)
	}
	l.Pass(levels(1, 1))
	testkit.Equal(t, "one is read: tasks", l.Tasks(whole(mail)), 18)
	q.halve()
	l.Pass(levels(2, 2))
	testkit.Equal(t, "they became one: tasks", l.Tasks(whole(mail)), 8)
}

// Where there are too many groups, the half of them goes with the fewest tasks, and no tasklist; so many also if all have as many.
func TestGroupsWithFewTasksAreForgotten(t *testing.T) {
	for name, tasks := range map[string]func(i int) int64{"different": func(i int) int64 { return int64((i*7919)%groupsMax) + 2 }, "even": func(int) int64 { return 2 }} {
		l := NewLane(NewCaps(map[Tasklist]int64{mail: 10}, map[Tasklist]int64{bulk: 5}, nil), 0)
		l.Add(1, whole(mail), "shop", some(1))
		for i := range groupsMax + 1 {
			l.Add(uint64(i+2), Queue{bulk, fmt.Sprint(i)}, "shop", some(tasks(i)))
		}
		least := int64(1 << 40)
		for at, q := range l.lists {
			if at.Group != "" && at.Group != fmt.Sprint(groupsMax) {
				least = min(least, q.Tasks)
			}
		}
		if l.Tasks(whole(mail)) != 1 || l.groups != groupsMax/2+1 || len(l.lists) != l.groups+1 || name == "different" && least != groupsMax/2+2 {
			t.Errorf("%s: %d groups of %d, the least has %d tasks", name, l.groups, len(l.lists), least)
		}
	}
}

func TestCapsCover(t *testing.T) {
	if NewCaps(nil, nil, nil) != nil {
		t.Error("none are some")
	}
	one, both := NewCaps(map[Tasklist]int64{mail: 1}, nil, nil), NewCaps(map[Tasklist]int64{mail: 2, bulk: 1, {"bank", "x"}: 1}, nil, nil)
	if len(both.Domains) != 2 || both.Domains[0] != "bank" {
		t.Errorf("domains %v", both.Domains)
	}
	if l := NewLane(both, 0); !l.Covers(one) || !l.Covers(both) {
		t.Error("fewer are not covered")
	}
	if NewLane(one, 0).Covers(both) {
		t.Error("more are covered")
	}
	groups := NewCaps(map[Tasklist]int64{mail: 1}, map[Tasklist]int64{bulk: 2, {"bank", "x"}: 1}, nil)
	if len(groups.Domains) != 2 || !groups.Has(mail) || !groups.Has(bulk) || groups.Has(Tasklist{"bank", "y"}) {
		t.Errorf("%v", groups)
	}
	if l := NewLane(groups, 0); !l.Covers(one) || !l.Covers(groups) || l.Covers(both) || NewLane(one, 0).Covers(groups) {
		t.Error("caps per group are taken for others")
	}
}

// Against a model that remembers each message: exact while there are few, never more than is unread, and bounded.
func TestAgainstAModel(t *testing.T) {
	rng := testkit.Seed(t)
	type message struct {
		seq   uint64
		filed ids.Place
		tasks int64
	}
	places := [...]ids.Place{"", "shop", "shop.mail"}
	for run := range 6 {
		var model []message
		l, own, shared, seq := NewLane(NewCaps(map[Tasklist]int64{mail: 1}, nil, nil), 0), uint64(0), uint64(0), uint64(0)
		for range 200 {
			for range rng.IntN(100) {
				seq += 1 + rng.Uint64N(3)
				m := message{seq, places[rng.IntN(len(places))], 1 + rng.Int64N(1000)}
				model = append(model, m)
				l.Add(m.seq, whole(mail), m.filed, some(m.tasks))
			}
			l.Counted(seq)
			if run%4 > 0 || rng.IntN(100) == 0 { // else it grows long
				own += rng.Uint64N(seq-own+1) / 20
			}
			shared += rng.Uint64N(seq-shared+1) / 20
			l.Pass(levels(own, shared))
			want := int64(0)
			for _, m := range model {
				if m.filed == "" && m.seq > shared || m.filed != "" && m.seq > own {
					want += m.tasks
				}
			}
			for _, q := range l.lists {
				if len(q.spans) > spansMax {
					t.Fatalf("%d spans", len(q.spans))
				}
			}
			missing := int64(0)
			if run%4 == 0 {
				missing = 16_000 // of the span that is read in part, of a dozen messages at most
			}
			if got := l.Tasks(whole(mail)); got > want || got < want-missing {
				t.Fatalf("%d tasks are counted, %d are unread", got, want)
			}
		}
	}
}

// Groups are counted beside their tasklist where it has a cap per group, and only there.
func TestGroupsAreCountedWhereTheyHaveACap(t *testing.T) {
	l := NewLane(NewCaps(map[Tasklist]int64{mail: 10}, map[Tasklist]int64{bulk: 5}, nil), 0)
	acme, other := Queue{bulk, "acme"}, Queue{mail, "acme"}
	l.Add(1, acme, "shop", some(3))
	l.Add(1, other, "", some(4))
	l.Add(2, acme, "", some(2))
	l.Add(2, Queue{bulk, "b"}, "shop", some(1))
	l.Add(3, whole(bulk), "shop", some(7))
	l.Counted(3)
	byGroup := map[Queue]int64{{bulk, "b"}: 100}
	if l.ByGroup(byGroup); len(byGroup) != 2 || byGroup[acme] != 5 || byGroup[Queue{bulk, "b"}] != 101 {
		t.Errorf("%v", byGroup)
	}
	if l.Tasks(acme) != 5 || l.Tasks(whole(bulk)) != 0 || l.Tasks(whole(mail)) != 4 || l.Tasks(other) != 0 {
		t.Errorf("%v", l.lists)
	}
	l.Pass(levels(1, 1))
	if l.Tasks(acme) != 2 || l.groups != 2 {
		t.Errorf("one is read: %d of %d groups", l.Tasks(acme), l.groups)
	}
	l.Pass(levels(3, 3))
	if l.groups != 0 || len(l.lists) != 0 {
		t.Errorf("all is read: %d groups, %v", l.groups, l.lists)
	}
	if l.ByGroup(byGroup); len(byGroup) != 2 {
		t.Errorf("%v", byGroup)
	}
}

// A hundred thousand groups that have a few tasks each cost bounded memory, and do not hide the one that floods.
func TestAFloodShowsBesideManyGroups(t *testing.T) {
	l := NewLane(NewCaps(nil, map[Tasklist]int64{bulk: 1000}, nil), 0)
	flood, seq, sent := Queue{bulk, "flood"}, uint64(0), int64(0)
	for i := range 100_000 {
		seq++
		l.Add(seq, Queue{bulk, fmt.Sprint("g", i)}, "shop", some(1))
		if i%10 == 0 {
			l.Add(seq, flood, "shop", some(5))
			sent += 5
		}
		l.Counted(seq)
		if l.groups > groupsMax || len(l.lists) != l.groups || len(l.lists[place{flood, "shop"}].spans) > fewSpansMax {
			t.Fatalf("%d groups are counted, %d are kept", l.groups, len(l.lists))
		}
	}
	if n := l.Tasks(flood); n > sent || n < sent*9/10 {
		t.Errorf("of a flood %d tasks are counted, %d were sent", n, sent)
	}
}

// A domain that floods with groups on disk does not have those of another forgotten (I14).
func TestI14_GroupsOfADomainLeaveRoomForOthers(t *testing.T) {
	bank := Tasklist{"bank", "mail"}
	l := NewLane(NewCaps(nil, map[Tasklist]int64{bulk: 1, bank: 100}, nil), 0)
	for i := range 10 {
		l.Add(1, Queue{bank, fmt.Sprint("g", i)}, "bank", some(1))
	}
	for i := range 10 * groupsMax {
		l.Add(2, Queue{bulk, fmt.Sprint("g", i)}, "shop", some(50))
	}
	for i := range 10 {
		if n := l.Tasks(Queue{bank, fmt.Sprint("g", i)}); n != 1 {
			t.Errorf("of group %d %d tasks are counted", i, n)
		}
	}
	if l.groups > groupsMax || len(l.lists) != l.groups {
		t.Errorf("%d groups are counted, %d are kept", l.groups, len(l.lists))
	}
}
