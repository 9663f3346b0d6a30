package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// onItsWay is a chunk of a domain.
func onItsWay(s *Shard, domain string) arrived {
	l := s.list(table.Tasklist{Domain: domain, Name: "l0"})
	packed := ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(epochMS), 0, 1), Version: 1})
	return arrival.Of(l, table.Chunk{Tasklist: l.Tasklist, Column: table.Column{Priority: 3, Type: "a"}, Triggers: packed})
}

// TestAPauseFindsWhatIsUnderWay, wherever it is: all triggers of the domain are released, and history sends them again. Other domains are left alone.
func TestAPauseFindsWhatIsUnderWay(t *testing.T) {
	w, o := begun(t, 2)
	s := o.s
	s.grabs = grab.New[*list](grab.Config{Partitions: 1}) // it is not fenced, so it sets all triggers aside
	s.arrivals.All = nil
	for i, domain := range []string{"d", "e"} {
		a := onItsWay(s, domain)
		s.arrivals.All = append(s.arrivals.All, a)
		trigger := ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(epochMS), 0, uint64(i))}
		s.grabs.Ask(request{Trigger: trigger, From: &grab.Origin[*list]{Chunk: a.Chunk}}, ids.AppendTrigger(nil, trigger))
	}
	asks := s.questions.Len()
	w.pausedGroups["d=g"] = true
	s.limitsChanged("d")
	testkit.Equal(t, "arrive", len(s.arrivals.All), 1)
	if _, aside, _ := s.grabs.Leave(); len(aside) != 1 || aside[0].Domain != "e" {
		t.Errorf("%d are aside", len(aside))
	}
	testkit.Equal(t, "partitions are asked", s.questions.Len()-asks, 2)
}

// TestWhatKeepsADomainInUse: among it the groups that are paused, of which history sends what was let go when they go on.
func TestWhatKeepsADomainInUse(t *testing.T) {
	for name, change := range map[string]func(d *domain, l *limit.Limit){
		"":                       func(*domain, *limit.Limit) {},
		"a tasklist":             func(d *domain, _ *limit.Limit) { d.Sources = []*source{{}} },
		"a limit to be reported": func(d *domain, l *limit.Limit) { d.Due = []*limit.Limit{l} },
		"a paused group":         func(d *domain, _ *limit.Limit) { d.withheld = map[string]bool{"g": true} },
		"an attempt":             func(_ *domain, l *limit.Limit) { l.Slots = map[limit.Member]limit.Holding{{}: {}} },
		"a group":                func(_ *domain, l *limit.Limit) { l.ByGroup.Limits = map[string]*limit.Limit{"g": {}} },
		"not counted":            func(_ *domain, l *limit.Limit) { l.Unknown = 1 },
		"a trigger that waits":   func(_ *domain, l *limit.Limit) { l.Wait = 1 },
		"no slot":                func(_ *domain, l *limit.Limit) { l.Blocked = table.Full },
		"what was read ahead":    func(_ *domain, l *limit.Limit) { l.Ahead = make([]limit.Ahead, 1) },
	} {
		l := &limit.Limit{ByGroup: &limit.PerGroup{}}
		d := &domain{Tables: &tablecall.Tables[*list]{Domain: &limit.Domain{Met: []*limit.Limit{l}}}}
		if change(d, l); d.inUse() != (name != "") {
			t.Errorf("%q: in use %v", name, d.inUse())
		}
	}
}
