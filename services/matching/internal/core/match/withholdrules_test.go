package match

import (
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// onItsWay is an arrival of a message of its own, in a column that groups share or in that of one.
func onItsWay(s *Shard, domain, group string) arrival {
	l := s.list(table.Tasklist{Domain: domain, Name: "l0"})
	packed := ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(epochMS), 0, 1), Version: 1})
	return arrival{
		list: l, from: &delivery{left: 1},
		Chunk: table.Chunk{Tasklist: l.Tasklist, Column: table.Column{Priority: 3, Type: "a", Group: group}, Triggers: packed},
	}
}

// finished tells whether a message is done with, and well.
func (a *arrival) finished() bool { return a.from.left == 0 && !a.from.again }

// TestADomainStartsOverWithWhatIsUnderWay, wherever it is: it is let go, and its message done with. Other domains are
// left alone.
func TestADomainStartsOverWithWhatIsUnderWay(t *testing.T) {
	for _, domain := range []string{"d", "e"} {
		for _, where := range []string{"arrives", "put", "ahead", "aside", "gathered"} {
			_, o := begun(t, 2)
			s, d := o.s, o.s.domains["d"]
			a := onItsWay(s, domain, "")
			of, lane := a.list.domain, s.lanes[0]
			left := func() int {
				return len(s.arrivals) + len(of.puts) + s.ahead + lane.asideN + len(lane.aside) + len(lane.gather)
			}
			switch where {
			case "arrives":
				s.arrivals = []arrival{a}
			case "put":
				of.puts = []arrival{a}
				a.list.putting++
			case "ahead":
				l := &limit{domain: of, ahead: []arrival{a}}
				of.met = append(of.met, l)
				s.countAhead(&l.ahead[0], 1)
			case "aside":
				lane.aside, lane.asideN = []table.Chunk{a.Chunk}, 1
			case "gathered":
				lane.gather = []grab{{trigger: ids.TriggerAt(a.Triggers, 0), poll: &poll{list: a.list, pending: 1}, from: &origin{list: a.list, Chunk: a.Chunk}}}
				a.list.undecided++
			}
			before, asks := left(), len(s.asks.waiting)
			s.startOver(d)
			message := where == "arrives" || where == "put"
			switch {
			case domain == "d" && (left() != 0 || message && !a.finished() || a.list.putting+a.list.undecided != 0):
				t.Errorf("%s: %d are left, its message is done with: %v", where, left(), a.finished())
			case domain == "e" && (left() != before || a.finished()):
				t.Errorf("%s, of another domain: %d are left of %d", where, left(), before)
			}
			testkit.Equal(t, where+": partitions are asked", len(s.asks.waiting)-asks, 2)
		}
	}
}

// TestADomainStartsOverWithItsTables: all that stands there is forgotten, also what was set aside, and what a call
// takes that is under way.
func TestADomainStartsOverWithItsTables(t *testing.T) {
	_, o := begun(t, 1)
	s, d := o.s, o.s.domains["d"]
	l, other := s.list(table.Tasklist{Domain: "d", Name: "l0"}), s.list(table.Tasklist{Domain: "e", Name: "l0"})
	shared := table.Column{Priority: 3, Type: "a"}
	l.index.Put(shared, 1, 1)
	other.index.Put(shared, 1, 1)
	for _, group := range []string{"g", "h"} {
		l.index.PutGroup(table.Column{Priority: 3, Type: "a", Group: group}, 1, 1, 1, 1)
	}
	l.index.Aside(table.Column{Priority: 3, Type: "a", Group: "g"})
	l.ranks[shared] = &ranks{}
	c := &call{life: d.life, out: table.Call{Domain: "d"}, lists: []*list{l}, paths: [][]*path{{unlimited}}}
	d.call, d.state = c, open
	s.startOver(d)
	if !l.index.Empty() || other.index.Empty() || len(d.clears) != 3 || len(l.ranks) != 0 {
		t.Errorf("%d triggers are left, to be forgotten: %v", l.index.Triggers(), d.clears)
	}
	s.asks.waiting, s.asks.retriggers = nil, map[about]*question{}
	taken := table.Taken{
		Batches: []table.Batch{{Column: shared, Triggers: onItsWay(s, "d", "").Triggers}},
		Heads:   []table.Head{{Column: shared, ReadyAt: 1}},
	}
	s.called(&CallOutcome{Domain: "d", Outcome: table.Outcome{Taken: []table.Taken{taken}}})
	if len(s.taken)+len(s.arrivals) > 0 || !l.index.Empty() {
		t.Errorf("%d are to meet polls, %d to be stored", len(s.taken), len(s.arrivals))
	}
	testkit.Equal(t, "partitions are asked", len(s.asks.waiting), 1)
}

// TestWhatACallDidNotStoreArrivesAgain, but for that of a domain that has started over.
func TestWhatACallDidNotStoreArrivesAgain(t *testing.T) {
	for _, over := range []bool{false, true} {
		_, o := begun(t, 1)
		s, d := o.s, o.s.domains["d"]
		a := onItsWay(s, "d", "")
		d.call = &call{life: d.life, puts: []arrival{a}}
		if over {
			s.startOver(d)
		}
		s.called(&CallOutcome{Domain: "d", Failed: true})
		if len(s.arrivals) != map[bool]int{false: 1}[over] || a.finished() != over {
			t.Errorf("started over %v: %d arrive again", over, len(s.arrivals))
		}
	}
}

// TestTriggersOfPausedGroupsAreTakenOut, and those of others stay as they are, in their order.
func TestTriggersOfPausedGroupsAreTakenOut(t *testing.T) {
	var packed []byte
	for n := range uint64(4) {
		packed = ids.AppendTrigger(packed, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(epochMS), 0, n+1), Version: 1})
	}
	left := slices.Concat(packed[ids.TriggerBytes:2*ids.TriggerBytes], packed[3*ids.TriggerBytes:])
	all := &Triggers{Packed: packed, Groups: []string{"g", "h", "g", ""}}
	if rest := all.without(map[string]bool{"g": true}); !slices.Equal(rest.Packed, left) || !slices.Equal(rest.Groups, []string{"h", ""}) || len(all.Packed) != len(packed) {
		t.Errorf("%d bytes of %d are left", len(rest.Packed), len(all.Packed))
	}
	if none := (&Triggers{Packed: packed}); none.without(map[string]bool{"g": true}) != none || all.without(nil) != all {
		t.Error("nothing is paused, and they are others")
	}
}

// TestWhatKeepsADomainInUse: among it the groups that are paused, of which history sends what was let go when they go on.
func TestWhatKeepsADomainInUse(t *testing.T) {
	for name, change := range map[string]func(d *domain, l *limit){
		"":                       func(*domain, *limit) {},
		"a tasklist":             func(d *domain, _ *limit) { d.lists = []*list{{}} },
		"a limit to be reported": func(d *domain, l *limit) { d.due = []*limit{l} },
		"a call":                 func(d *domain, _ *limit) { d.call = &call{} },
		"it is being opened":     func(d *domain, _ *limit) { d.asked = true },
		"triggers were lost":     func(d *domain, _ *limit) { d.lost = true },
		"a paused group":         func(d *domain, _ *limit) { d.withheld = map[string]bool{"g": true} },
		"an attempt":             func(_ *domain, l *limit) { l.held = map[member]holding{{}: {}} },
		"a group":                func(_ *domain, l *limit) { l.perGroup.limits = map[string]*limit{"g": {}} },
		"not counted":            func(_ *domain, l *limit) { l.unknown = 1 },
		"a trigger that waits":   func(_ *domain, l *limit) { l.wait = 1 },
		"no slot":                func(_ *domain, l *limit) { l.blocked = table.Full },
		"an audit":               func(_ *domain, l *limit) { l.auditLeft = 1 },
		"what was read ahead":    func(_ *domain, l *limit) { l.ahead = make([]arrival, 1) },
	} {
		l := &limit{perGroup: &perGroup{}}
		d := &domain{met: []*limit{l}}
		if change(d, l); d.inUse() != (name != "") {
			t.Errorf("%q: in use %v", name, d.inUse())
		}
	}
}
