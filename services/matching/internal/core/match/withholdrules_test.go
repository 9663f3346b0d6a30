package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// onItsWay is a chunk in a column that groups share or in that of one.
func onItsWay(s *Shard, domain, group string) arrived {
	l := s.list(table.Tasklist{Domain: domain, Name: "l0"})
	packed := ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(epochMS), 0, 1), Version: 1})
	return arrival.Of(l, table.Chunk{Tasklist: l.Tasklist, Column: table.Column{Priority: 3, Type: "a", Group: group}, Triggers: packed})
}

// TestAPauseFindsWhatIsUnderWay, wherever it is: what may be of the group is let go. Other domains and columns are left alone.
func TestAPauseFindsWhatIsUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		domain, group  string
		arrives, waits int // of what arrives, and of what waits
	}{
		"shared":         {"d", "", 0, 0},
		"its own":        {"d", "g", 1, 0}, // it is let go when it is sorted
		"another's":      {"d", "h", 1, 2},
		"another domain": {"e", "", 1, 2},
	} {
		_, o := begun(t, 2)
		s, d := o.s, o.s.domains["d"]
		d.withheld = map[string]bool{"g": true}
		a := onItsWay(s, c.domain, c.group)
		of := a.List.domain
		s.arrivals.All, of.held, of.puts = []arrived{a}, []arrived{a}, []arrived{a}
		a.List.putting++
		asks := s.questions.Len()
		s.cleanse(d)
		if arrives, waits := len(s.arrivals.All), len(of.held)+len(of.puts); arrives != c.arrives || waits != c.waits || a.List.putting != len(of.puts) {
			t.Errorf("%s: arrives %d, waits %d, %d to be stored", name, arrives, waits, a.List.putting)
		}
		testkit.Equal(t, fmt.Sprintf("%s: partitions are asked", name), s.questions.Len()-asks, 2)
	}
}

// TestAPauseFindsWhatWasTaken: what is set aside for a partition, or comes out of the tables, or stands there.
func TestAPauseFindsWhatWasTaken(t *testing.T) {
	_, o := begun(t, 1)
	s, d := o.s, o.s.domains["d"]
	d.withheld = map[string]bool{"g": true}
	l, other := s.list(table.Tasklist{Domain: "d", Name: "l0"}), s.list(table.Tasklist{Domain: "e", Name: "l0"})
	s.grabs = grab.New[*list](grab.Config{Partitions: 1}) // it is not fenced, so it sets all triggers aside
	for i, at := range [][2]string{{"d", ""}, {"d", "g"}, {"d", "h"}, {"e", ""}} {
		trigger := ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(epochMS), 0, uint64(i))}
		s.grabs.Ask(request{Trigger: trigger, From: &origin{Chunk: onItsWay(s, at[0], at[1]).Chunk}}, ids.AppendTrigger(nil, trigger))
	}
	shared := table.Column{Priority: 3, Type: "a"}
	l.index.Put(shared, 1, 1)
	for _, group := range []string{"g", "h"} {
		l.index.PutGroup(table.Column{Priority: 3, Type: "a", Group: group}, 1, 1, 1, 1)
	}
	l.ranks.Found(&table.Known{Column: shared, Rank: 7}, 1)
	l.ranks.Found(&table.Known{Column: shared.Any(), Rank: 7}, 1)
	s.taken = []taken{{list: l}, {list: other}}
	d.call, other.domain.call = &call{}, &call{}
	s.cleanse(d)
	if _, aside, _ := s.grabs.Leave(); len(aside) != 2 || aside[0].Group != "h" || aside[1].Domain != "e" {
		t.Errorf("%d are aside", len(aside))
	}
	if l.index.Triggers() != 1 || l.index.InColumn(table.Column{Priority: 3, Type: "a", Group: "h"}) != 1 || len(d.clears) != 2 || l.ranks.Now(shared) != 0 || l.ranks.Now(shared.Any()) == 0 {
		t.Errorf("%d triggers are left, to be forgotten: %v", l.index.Triggers(), d.clears)
	}
	if !d.call.Stale || other.domain.call.Stale || !s.taken[0].stale || s.taken[1].stale {
		t.Errorf("stale: %v %v", s.taken[0].stale, s.taken[1].stale)
	}
	s.cleanse(other.domain)
	if !s.taken[0].stale || !s.taken[1].stale {
		t.Error("a second pause has the first one forgotten")
	}
}

// TestWhatATableGaveMayBePaused: if it is of the group, or of one that groups share and that was forgotten meanwhile.
func TestWhatATableGaveMayBePaused(t *testing.T) {
	for _, c := range []struct {
		stale bool
		group string
		out   bool
		asked int
	}{{false, "", false, 0}, {true, "", true, 1}, {true, "h", false, 0}, {true, "g", true, 0}, {false, "g", true, 0}} {
		_, o := begun(t, 1)
		o.s.domains["d"].withheld = map[string]bool{"g": true}
		got := taken{list: o.s.list(table.Tasklist{Domain: "d", Name: "l0"}), stale: c.stale}
		got.chunk.Group = c.group
		asks := o.s.questions.Len()
		if out := got.withhold(o.s); out != c.out || o.s.questions.Len()-asks != c.asked {
			t.Errorf("%+v: %v, %d are asked", c, out, o.s.questions.Len()-asks)
		}
	}
	for _, stale := range []bool{false, true} { // what a call that was not made was to store
		_, o := begun(t, 1)
		c := &call{Stale: stale, Puts: []arrived{onItsWay(o.s, "d", ""), onItsWay(o.s, "d", "h")}}
		if n := len(o.s.putAgain(c)); n != map[bool]int{false: 2, true: 1}[stale] {
			t.Errorf("stale %v: %d arrive again", stale, n)
		}
	}
}

// TestWhatKeepsADomainInUse: among it the groups that are paused, of which history sends what was let go when they go on.
func TestWhatKeepsADomainInUse(t *testing.T) {
	for name, change := range map[string]func(d *domain, l *limit.Limit){
		"":                       func(*domain, *limit.Limit) {},
		"a tasklist":             func(d *domain, _ *limit.Limit) { d.lists = []*list{{}} },
		"a limit to be reported": func(d *domain, l *limit.Limit) { d.Due = []*limit.Limit{l} },
		"a call":                 func(d *domain, _ *limit.Limit) { d.call = &call{} },
		"it is being opened":     func(d *domain, _ *limit.Limit) { d.asked = true },
		"triggers were lost":     func(d *domain, _ *limit.Limit) { d.lost = true },
		"a paused group":         func(d *domain, _ *limit.Limit) { d.withheld = map[string]bool{"g": true} },
		"an attempt":             func(_ *domain, l *limit.Limit) { l.Slots = map[limit.Member]limit.Holding{{}: {}} },
		"a group":                func(_ *domain, l *limit.Limit) { l.ByGroup.Limits = map[string]*limit.Limit{"g": {}} },
		"not counted":            func(_ *domain, l *limit.Limit) { l.Unknown = 1 },
		"a trigger that waits":   func(_ *domain, l *limit.Limit) { l.Wait = 1 },
		"no slot":                func(_ *domain, l *limit.Limit) { l.Blocked = table.Full },
		"an audit":               func(_ *domain, l *limit.Limit) { l.Auditing = true },
		"what was read ahead":    func(_ *domain, l *limit.Limit) { l.Ahead = make([]limit.Ahead, 1) },
	} {
		l := &limit.Limit{ByGroup: &limit.PerGroup{}}
		d := &domain{Domain: &limit.Domain{Met: []*limit.Limit{l}}}
		if change(d, l); d.inUse() != (name != "") {
			t.Errorf("%q: in use %v", name, d.inUse())
		}
	}
}
