package backlog

import (
	"fmt"
	"iter"
	"maps"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const lane ids.Lane = 3

// paused is a lane without room, read up to a sequence.
func paused(read uint64) (at Progress) {
	at.Read[lane], at.Paused[lane] = read, true
	return at
}

func read(up uint64) (at Progress) {
	at.Read[lane] = up
	return at
}

var oneCap = NewCaps(map[Tasklist]int64{mail: 100}, nil, nil)

// memory is what a partition has in memory.
type memory map[Queue]Held

func (m memory) Queued(of Queue) Held { return m[of] }

func (m memory) QueuedGroups(of Tasklist) iter.Seq2[string, Held] {
	return func(yield func(string, Held) bool) {
		for q, held := range m {
			if q.Tasklist == of && q.Group != "" && held.Tasks > 0 && !yield(q.Group, held) {
				return
			}
		}
	}
}

func (m memory) WaitingDomains(of map[string]bool) iter.Seq2[string, Amount] {
	sums := map[string]Amount{}
	for q, held := range m {
		if of[q.Domain] && q.Group == "" {
			sums[q.Domain] = Amount{sums[q.Domain].Tasks + held.Tasks, sums[q.Domain].Bytes + 10*held.Tasks}
		}
	}
	return maps.All(sums)
}

func (c *Counter) reported(of Tasklist) int64 {
	all, _ := c.Report(memory{})
	for _, q := range all {
		if q.Tasklist == of {
			return q.Tasks
		}
	}
	return 0
}

func want(t *testing.T, c *Counter, what string, of Tasklist, tasks int64, to uint64) {
	t.Helper()
	if got, up := c.reported(of), c.To(lane, 0); got != tasks || up != to {
		t.Errorf("%s: %d tasks up to %d, want %d up to %d", what, got, up, tasks, to)
	}
}

// Nothing is read without a cap, nor where the readers are at the end.
func TestWithoutABacklogNothingIsRead(t *testing.T) {
	var c Counter
	if s := c.Turn(nil, paused(7), 0); s != nil {
		t.Errorf("without a cap: %v", s)
	}
	if lists, groups := c.Report(nil); lists != nil || groups != nil {
		t.Errorf("without a cap: %v %v", lists, groups)
	}
	if s := c.Turn(oneCap, read(7), 0); s != nil {
		t.Errorf("without a backlog: %v", s)
	}
	later := Progress{}
	later.Paused[ids.LaneLater] = true
	if s := c.Turn(oneCap, later, 0); s != nil {
		t.Errorf("delayed tasks: %v", s)
	}
	testkit.Equal(t, "counted up to", c.To(lane, 7), 7)
	other := read(7)
	other.Lagging = []Lagging{{lane, "bank", 1}}
	if s := c.Turn(oneCap, other, 0); s != nil {
		t.Errorf("another domain lags: %v", s)
	}
	other.Lagging = []Lagging{{lane, "shop", 7}}
	if s := c.Turn(oneCap, other, 0); s != nil {
		t.Errorf("it lags no more: %v", s)
	}
}

func TestTheLanesOfAllPrioritiesAreCounted(t *testing.T) {
	for of := ids.LaneFirst; of < ids.Lanes; of++ {
		var c Counter
		var at Progress
		at.Paused[of] = true
		if s := c.Turn(oneCap, at, 0); s == nil || s.Lane != of {
			t.Errorf("lane %d: %+v", of, s)
		}
	}
}

func TestABacklogIsCountedAsItIsRead(t *testing.T) {
	var c Counter
	s := c.Turn(oneCap, paused(7), 0)
	if s == nil || s.Lane != lane || s.From != 8 || fmt.Sprint(s.Domains) != "[shop]" {
		t.Fatalf("%+v", s)
	}
	if again := c.Turn(oneCap, paused(7), time.Hour); again != nil {
		t.Error("two at a time")
	}
	c.Scanned(s, []Found{{Seq: 8, Of: whole(mail), Filed: "shop", Amount: some(5)}, {Seq: 9, Of: whole(mail), Amount: some(2)}}, 9, true)
	want(t, &c, "cut", mail, 7, 9)
	s = c.Turn(oneCap, paused(8), 0)
	if s == nil || s.From != 10 {
		t.Fatalf("the rest: %+v", s)
	}
	want(t, &c, "one is read", mail, 2, 9)
	c.Failed()
	if s = c.Turn(oneCap, paused(8), ScanEvery-1); s != nil {
		t.Errorf("too soon after a failure: %+v", s)
	}
	if s = c.Turn(oneCap, paused(8), ScanEvery); s == nil || s.From != 10 {
		t.Fatalf("after a failure: %+v", s)
	}
	c.Scanned(s, nil, 20, false)
	want(t, &c, "to the end", mail, 2, 20)
	testkit.Equal(t, "what is read is counted", c.To(lane, 21), 21)
	c.Turn(oneCap, read(20), ScanEvery)
	want(t, &c, "room again", mail, 0, 0)
}

// A domain that lags is counted from where it is read, though its lane has passed it.
func TestADomainThatLagsIsCounted(t *testing.T) {
	var c Counter
	at := read(50)
	at.Lagging = []Lagging{{lane, "bank", 1}, {lane + 1, "shop", 2}, {lane, "shop", 10}}
	s := c.Turn(oneCap, at, 0)
	if s == nil || s.Lane != lane || s.From != 11 {
		t.Fatalf("%+v", s)
	}
	c.Scanned(s, []Found{{Seq: 11, Of: whole(mail), Filed: "shop", Amount: some(5)}, {Seq: 12, Of: whole(mail), Amount: some(100)}, {Seq: 60, Of: whole(mail), Filed: "shop", Amount: some(1)}}, 60, false)
	c.Turn(oneCap, at, 0)
	want(t, &c, "what is shared is read with the lane", mail, 6, 60)
	at.Lagging[2].Read = 11
	c.Turn(oneCap, at, 0)
	want(t, &c, "its reader", mail, 1, 60)
}

// Of several domains that lag the one is counted from that is read the least, wherever it stands.
func TestTheLeastReadIsCountedFrom(t *testing.T) {
	caps := NewCaps(map[Tasklist]int64{mail: 1, {"bank", "x"}: 1}, nil, nil)
	for _, reads := range [][2]uint64{{10, 20}, {20, 10}} {
		var c Counter
		at := read(50)
		at.Lagging = []Lagging{{lane, "bank", reads[0]}, {lane, "shop", reads[1]}}
		if s := c.Turn(caps, at, 0); s == nil || s.From != 11 {
			t.Errorf("%v: %+v", reads, s)
		}
	}
}

// A tasklist that gets a cap is counted, too, without a gap for the others.
func TestMoreCapsAreCountedAnew(t *testing.T) {
	var c Counter
	s := c.Turn(oneCap, paused(7), 0)
	c.Scanned(s, []Found{{Seq: 8, Of: whole(mail), Filed: "shop", Amount: some(5)}, {Seq: 9, Of: whole(bulk), Filed: "shop", Amount: some(3)}}, 9, false)
	more := NewCaps(map[Tasklist]int64{mail: 100, bulk: 2}, nil, nil)
	s = c.Turn(more, paused(7), RecountEvery-1)
	if s == nil || s.From != 10 {
		t.Fatalf("too soon: %+v", s)
	}
	c.Scanned(s, nil, 9, false)
	s = c.Turn(more, paused(7), RecountEvery+ScanEvery)
	if s == nil || s.From != 8 {
		t.Fatalf("%+v", s)
	}
	c.Scanned(s, []Found{{Seq: 8, Of: whole(mail), Filed: "shop", Amount: some(5)}}, 8, true)
	want(t, &c, "half way", mail, 5, 9)
	want(t, &c, "half way", bulk, 0, 9)
	s = c.Turn(more, paused(7), 3*RecountEvery) // it does not begin again, however long it takes
	if s == nil || s.From != 9 {
		t.Fatalf("%+v", s)
	}
	c.Scanned(s, []Found{{Seq: 9, Of: whole(bulk), Filed: "shop", Amount: some(3)}}, 9, false)
	want(t, &c, "in the end", mail, 5, 9)
	want(t, &c, "in the end", bulk, 3, 9)
	all, _ := c.Report(memory{whole(mail): {Tasks: 1}})
	if fmt.Sprint(all) != "[{{{shop bulk} } 3} {{{shop mail} } 6}]" {
		t.Errorf("the fullest first: %v", all)
	}
	c.Turn(nil, paused(7), RecountEvery+ScanEvery)
	want(t, &c, "without caps", mail, 0, 0)
}

// What is read while it is counted again is not counted when that is done.
func TestWhatIsReadMeanwhileIsForgotten(t *testing.T) {
	var c Counter
	c.Scanned(c.Turn(oneCap, paused(7), 0), []Found{{Seq: 8, Of: whole(mail), Filed: "shop", Amount: some(5)}}, 8, false)
	more := NewCaps(map[Tasklist]int64{mail: 100, bulk: 2}, nil, nil)
	c.Scanned(c.Turn(more, paused(7), RecountEvery), []Found{{Seq: 8, Of: whole(mail), Filed: "shop", Amount: some(5)}}, 8, true)
	c.Scanned(c.Turn(more, paused(8), RecountEvery), []Found{{Seq: 9, Of: whole(mail), Filed: "shop", Amount: some(1)}}, 9, false)
	want(t, &c, "one is read", mail, 1, 9)
}

// A scan that ends after its lane was dropped changes nothing.
func TestALateScanIsIgnored(t *testing.T) {
	var c Counter
	s := c.Turn(oneCap, paused(7), 0)
	c.Turn(oneCap, read(9), 0)
	c.Scanned(s, []Found{{Seq: 8, Of: whole(mail), Filed: "shop", Amount: some(5)}}, 9, false)
	want(t, &c, "late", mail, 0, 0)
	if s = c.Turn(oneCap, paused(9), 0); s == nil || s.From != 10 {
		t.Errorf("%+v", s)
	}
}

func TestAReportIsBounded(t *testing.T) {
	of, held := map[Tasklist]int64{}, memory{}
	for i := range 5*ReportMax + 5 {
		l := Tasklist{"shop", fmt.Sprint(i)}
		of[l], held[whole(l)] = int64(i+1), Held{Tasks: 10}
	}
	var c Counter
	c.Turn(NewCaps(of, nil, nil), read(1), 0)
	all, _ := c.Report(held)
	if len(all) != ReportMax || all[0].Name != "0" || all[ReportMax-1].Name != fmt.Sprint(ReportMax-1) {
		t.Errorf("%d: %v…%v", len(all), all[0], all[len(all)-1])
	}
}

// A report is due early once a twentieth of a cap has come or gone.
func TestAReportIsDueEarly(t *testing.T) {
	var c Counter
	held := memory{whole(mail): {Tasks: 50, Came: 500}}
	early := func(what string, now Held, want bool) {
		t.Helper()
		held[whole(mail)] = now
		testkit.Equal(t, fmt.Sprintf("%s: early", what), c.Early(held), want)
	}
	early("before a report", Held{100, 1000}, false)
	held[whole(mail)] = Held{50, 500}
	c.Turn(NewCaps(map[Tasklist]int64{mail: 100, bulk: 3}, nil, nil), read(1), 0)
	c.Report(held)
	early("little has come", Held{54, 504}, false)
	early("little has gone", Held{46, 500}, false)
	early("much has come, and gone", Held{50, 505}, true)
	early("much has gone", Held{45, 500}, true)
	early("it was forgotten meanwhile", Held{48, 2}, true)
	held[whole(bulk)] = Held{1, 1}
	early("one, of three", Held{50, 500}, true)
	c.Report(held)
	early("reported", Held{50, 500}, false)
	c.Turn(nil, read(1), 0)
	c.Report(held)
	early("without caps", Held{0, 0}, false)
}

// A report tells the groups that have a cap: in memory and on disk together, the nearest to their cap first, and none of those far below it.
func TestAReportTellsTheGroups(t *testing.T) {
	var c Counter
	caps := NewCaps(map[Tasklist]int64{mail: 100, {"shop", "idle"}: 1}, map[Tasklist]int64{mail: 10, bulk: 5000}, nil)
	s := c.Turn(caps, paused(7), 0)
	a, b, big, small := Queue{mail, "a"}, Queue{mail, "b"}, Queue{bulk, "big"}, Queue{bulk, "small"}
	c.Scanned(s, []Found{{Seq: 8, Of: a, Filed: "shop", Amount: some(2)}, {Seq: 8, Of: b, Filed: "shop", Amount: some(9)}, {Seq: 8, Of: whole(mail), Filed: "shop", Amount: some(1)}, {Seq: 8, Of: small, Filed: "shop", Amount: some(4)}}, 8, false)
	lists, groups := c.Report(memory{whole(mail): {Tasks: 5}, a: {Tasks: 3}, big: {Tasks: 5}, {bulk, "none"}: {Came: 7}})
	if fmt.Sprint(lists) != "[{{{shop mail} } 17}]" {
		t.Errorf("lists %v", lists)
	}
	if fmt.Sprint(groups) != "[{{{shop mail} b} 9} {{{shop mail} a} 5} {{{shop bulk} big} 5}]" {
		t.Errorf("groups %v", groups)
	}
	c.Turn(NewCaps(nil, map[Tasklist]int64{bulk: 100}, nil), paused(7), 1)
	if _, groups = c.Report(memory{}); fmt.Sprint(groups) != "[{{{shop bulk} small} 4}]" {
		t.Errorf("of one that has a cap no more: %v", groups)
	}
}

// Of a hundred thousand groups a report has so many, the nearest to their cap; and only some of these can make one due early.
func TestAReportOfManyGroupsIsBounded(t *testing.T) {
	var c Counter
	c.Turn(NewCaps(nil, map[Tasklist]int64{mail: 1000}, nil), read(1), 0)
	held := memory{}
	for i := range 100_000 {
		held[Queue{mail, fmt.Sprint("g", i)}] = Held{Tasks: 1 + int64(i*7919%100_000)}
	}
	_, groups := c.Report(held)
	testkit.MustEqual(t, "groups", len(groups), ReportMax)
	for i, q := range groups {
		testkit.MustEqual(t, fmt.Sprintf("number %d", i), q.Tasks, int64(100_000-i))
	}
	if c.Early(held) || len(c.known) != earlyGroups {
		t.Errorf("early, or %d groups are watched", len(c.known))
	}
	far := groups[earlyGroups].Queue
	held[far] = Held{Tasks: 1}
	if c.Early(held) {
		t.Error("one far from its cap makes a report early")
	}
	near := groups[0].Queue
	held[near] = Held{Tasks: held[near].Tasks - 49}
	if c.Early(held) {
		t.Error("little has gone")
	}
	held[near] = Held{Tasks: held[near].Tasks - 1}
	if !c.Early(held) {
		t.Error("a twentieth has gone")
	}
	c.Turn(NewCaps(nil, map[Tasklist]int64{mail: 10}, nil), read(1), 0)
	c.Report(held)
	held[near] = Held{Tasks: held[near].Tasks - earlyTasks + 1}
	if c.Early(held) {
		t.Error("a small cap makes reports early with few tasks")
	}
}

// A domain whose groups are all far beyond their cap does not keep those of another out of a report, nor from what makes one due early (I14).
func TestI14_AReportHasTheGroupsOfEachDomain(t *testing.T) {
	var c Counter
	bank := Tasklist{"bank", "mail"}
	caps := NewCaps(map[Tasklist]int64{bank: 10}, map[Tasklist]int64{mail: 1, bank: 10}, nil)
	c.Turn(caps, read(1), 0)
	held, few := memory{}, 3*earlyGroups
	for i := range 10 * ReportMax {
		held[Queue{mail, fmt.Sprint("g", i)}] = Held{Tasks: 1000 + int64(i)}
	}
	for i := range few {
		held[Queue{bank, fmt.Sprint("g", i)}] = Held{Tasks: 1 + int64(i)}
	}
	_, groups := c.Report(held)
	n := map[string]int{}
	for _, q := range groups {
		n[q.Domain]++
	}
	if n["bank"] != few || n["shop"] != ReportMax-few {
		t.Errorf("groups of each domain: %v", n)
	}
	if groups[0].Tasks != 1000+10*ReportMax-1 || groups[1].Tasks != int64(few) {
		t.Errorf("first are %v", groups[:2])
	}
	watched := 0
	for q := range c.known {
		if q.Domain == "bank" && q.Group != "" {
			watched++
		}
	}
	testkit.Equal(t, "watched", watched, earlyGroups/2)
}

// TestDomainsAreCountedWhole: all tasklists of a domain with a quota, in memory and on disk, with their bytes. It begins when there is one, as for a tasklist.
func TestDomainsAreCountedWhole(t *testing.T) {
	var c Counter
	held := memory{whole(mail): {Tasks: 2}, whole(bulk): {Tasks: 1}, whole(Tasklist{"bank", "x"}): {Tasks: 7}}
	c.Turn(oneCap, paused(7), 0)
	testkit.Equal(t, "without a quota", len(c.Domains(held)), 0)
	c.Failed()
	caps := NewCaps(nil, nil, map[string]bool{"shop": true, "idle": true})
	s := c.Turn(caps, paused(7), RecountEvery)
	if s == nil || s.From != 8 || fmt.Sprint(s.Domains) != "[idle shop]" || !caps.Has(bulk) || caps.Has(Tasklist{"bank", "x"}) || caps.Tasklists() {
		t.Fatalf("%+v", s)
	}
	c.Scanned(s, []Found{
		{Seq: 8, Of: whole(mail), Amount: Amount{5, 500}},
		{Seq: 9, Of: Queue{bulk, "acme"}, Amount: Amount{3, 30}},
		{Seq: 10, Of: whole(Tasklist{"bank", "x"}), Amount: Amount{9, 9}},
	}, 10, false)
	testkit.Equal(t, "in memory and on disk", fmt.Sprint(c.Domains(held)), "map[shop:{11 560}]")
	c.Turn(caps, paused(8), 2*RecountEvery)
	testkit.Equal(t, "with one message read", fmt.Sprint(c.Domains(memory{})), "map[shop:{3 30}]")
	if lists, groups := c.Report(held); len(lists)+len(groups) != 0 || c.Early(held) {
		t.Errorf("of tasklists without a cap: %v, %v", lists, groups)
	}
	c.Turn(nil, paused(8), 3*RecountEvery)
	testkit.Equal(t, "without a quota", len(c.Domains(held)), 0)
}

// TestTheDomainsRememberedAreBounded: those with the fewest tasks are forgotten, and a domain with many messages takes little.
func TestTheDomainsRememberedAreBounded(t *testing.T) {
	bounded := map[string]bool{"flood": true}
	for i := range 2 * groupsMax {
		bounded[fmt.Sprint("d", i)] = true
	}
	l := NewLane(NewCaps(nil, nil, bounded), 0)
	for i := range 2 * groupsMax {
		l.Add(uint64(2*i+1), whole(Tasklist{fmt.Sprint("d", i), "x"}), "", some(1))
		l.Add(uint64(2*i+2), whole(Tasklist{"flood", "x"}), "flood", some(5))
	}
	all := map[string]Amount{}
	l.ByDomain(all)
	if all["flood"].Tasks != 10*groupsMax || len(all) > groupsMax || len(l.lists) != len(all) || l.groups != len(all) {
		t.Errorf("%d domains, %d of the flood, %d counted", len(all), all["flood"].Tasks, l.groups)
	}
	testkit.Equal(t, "places of the flood", len(l.lists[place{Queue{Tasklist: Tasklist{Domain: "flood"}}, "flood"}].spans) <= fewSpansMax, true)
	l.Pass(func(ids.Place) uint64 { return 1 << 40 })
	testkit.Equal(t, "left when all is read", l.groups+len(l.lists), 0)
}
