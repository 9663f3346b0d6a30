package backlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
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

var oneCap = NewCaps(map[Tasklist]int64{mail: 100})

func (c *Counter) reported(of Tasklist) int64 {
	for _, q := range c.Report(func(Tasklist) Held { return Held{} }) {
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
	if s := c.Turn(nil, paused(7), 0); s != nil || c.Report(nil) != nil {
		t.Errorf("without a cap: %v", s)
	}
	if s := c.Turn(oneCap, read(7), 0); s != nil {
		t.Errorf("without a backlog: %v", s)
	}
	later := Progress{}
	later.Paused[ids.LaneLater] = true
	if s := c.Turn(oneCap, later, 0); s != nil {
		t.Errorf("delayed tasks: %v", s)
	}
	if to := c.To(lane, 7); to != 7 {
		t.Errorf("counted up to %d", to)
	}
	other := read(7)
	other.Lagging = []Lagging{{lane, "bank", 1}}
	if s := c.Turn(oneCap, other, 0); s != nil {
		t.Errorf("another domain lags: %v", s)
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
	c.Scanned(s, []Found{{Seq: 8, Of: mail, Tasks: 5}, {Seq: 9, Of: mail, Shared: true, Tasks: 2}}, 9, true)
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
	if to := c.To(lane, 21); to != 21 {
		t.Errorf("what is read is counted: %d", to)
	}
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
	c.Scanned(s, []Found{{Seq: 11, Of: mail, Tasks: 5}, {Seq: 12, Of: mail, Shared: true, Tasks: 100}, {Seq: 60, Of: mail, Tasks: 1}}, 60, false)
	c.Turn(oneCap, at, 0)
	want(t, &c, "what is shared is read with the lane", mail, 6, 60)
	at.Lagging[2].Read = 11
	c.Turn(oneCap, at, 0)
	want(t, &c, "its reader", mail, 1, 60)
}

// A tasklist that gets a cap is counted, too, without a gap for the others.
func TestMoreCapsAreCountedAnew(t *testing.T) {
	var c Counter
	s := c.Turn(oneCap, paused(7), 0)
	c.Scanned(s, []Found{{Seq: 8, Of: mail, Tasks: 5}, {Seq: 9, Of: bulk, Tasks: 3}}, 9, false)
	more := NewCaps(map[Tasklist]int64{mail: 100, bulk: 2})
	s = c.Turn(more, paused(7), RecountEvery-1)
	if s == nil || s.From != 10 {
		t.Fatalf("too soon: %+v", s)
	}
	c.Scanned(s, nil, 9, false)
	s = c.Turn(more, paused(7), RecountEvery+ScanEvery)
	if s == nil || s.From != 8 {
		t.Fatalf("%+v", s)
	}
	c.Scanned(s, []Found{{Seq: 8, Of: mail, Tasks: 5}}, 8, true)
	want(t, &c, "half way", mail, 5, 9)
	want(t, &c, "half way", bulk, 0, 9)
	s = c.Turn(more, paused(7), RecountEvery+ScanEvery)
	if s == nil || s.From != 9 {
		t.Fatalf("%+v", s)
	}
	c.Scanned(s, []Found{{Seq: 9, Of: bulk, Tasks: 3}}, 9, false)
	want(t, &c, "in the end", mail, 5, 9)
	want(t, &c, "in the end", bulk, 3, 9)
	all := c.Report(func(of Tasklist) Held { return map[Tasklist]Held{mail: {Queued: 1}}[of] })
	if fmt.Sprint(all) != "[{{shop bulk} 3} {{shop mail} 6}]" {
		t.Errorf("the fullest first: %v", all)
	}
	c.Turn(nil, paused(7), RecountEvery+ScanEvery)
	want(t, &c, "without caps", mail, 0, 0)
}

// A scan that ends after its lane was dropped changes nothing.
func TestALateScanIsIgnored(t *testing.T) {
	var c Counter
	s := c.Turn(oneCap, paused(7), 0)
	c.Turn(oneCap, read(9), 0)
	c.Scanned(s, []Found{{Seq: 8, Of: mail, Tasks: 5}}, 9, false)
	want(t, &c, "late", mail, 0, 0)
	if s = c.Turn(oneCap, paused(9), 0); s == nil || s.From != 10 {
		t.Errorf("%+v", s)
	}
}

func TestAReportIsBounded(t *testing.T) {
	of := map[Tasklist]int64{}
	for i := range ReportMax + 5 {
		of[Tasklist{"shop", fmt.Sprint(i)}] = int64(i + 1)
	}
	var c Counter
	c.Turn(NewCaps(of), read(1), 0)
	all := c.Report(func(Tasklist) Held { return Held{Queued: 10} })
	if len(all) != ReportMax || all[0].Name != "0" || all[ReportMax-1].Name != fmt.Sprint(ReportMax-1) {
		t.Errorf("%d: %v…%v", len(all), all[0], all[len(all)-1])
	}
}

// A report is due early once a twentieth of a cap has come or gone.
func TestAReportIsDueEarly(t *testing.T) {
	var c Counter
	held := map[Tasklist]Held{mail: {Queued: 50, Came: 500}}
	inMemory := func(of Tasklist) Held { return held[of] }
	early := func(what string, now Held, want bool) {
		t.Helper()
		held[mail] = now
		if got := c.Early(inMemory); got != want {
			t.Errorf("%s: early is %v", what, got)
		}
	}
	early("before a report", Held{100, 1000}, false)
	held[mail] = Held{50, 500}
	c.Turn(NewCaps(map[Tasklist]int64{mail: 100, bulk: 3}), read(1), 0)
	c.Report(inMemory)
	early("little has come", Held{54, 504}, false)
	early("little has gone", Held{46, 500}, false)
	early("much has come, and gone", Held{50, 505}, true)
	early("much has gone", Held{45, 500}, true)
	early("it was forgotten meanwhile", Held{48, 2}, true)
	held[bulk] = Held{1, 1}
	early("one, of three", Held{50, 500}, true)
	c.Report(inMemory)
	early("reported", Held{50, 500}, false)
	c.Turn(nil, read(1), 0)
	c.Report(inMemory)
	early("without caps", Held{0, 0}, false)
}
