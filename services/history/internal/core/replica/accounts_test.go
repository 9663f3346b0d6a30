package replica

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI11_WhatIsLeftOfAWindowIsArchivedInTime: beside a window of what lags a lane has half of one. If that is full, what has
// ended there does not wait for company.
func TestI11_WhatIsLeftOfAWindowIsArchivedInTime(t *testing.T) {
	b := lagging(t)
	b.file(false, 5, "shop", series(30, 3)...)
	if b.r.Room(lagLane) {
		t.Fatal("there is room left")
	}
	b.start(11)
	if fx := b.finish(taskstate.Succeeded, 11); len(fx.Archive) != 1 {
		t.Errorf("%d tasks are archived", len(fx.Archive))
	}
}

// TestI7_SoManyDomainsLag and no more, also if they are taken out at once.
func TestI7_SoManyDomainsLag(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "one", series(1, 4)...)
	b.file(false, 2, "two", append(series(11, 4), 30, 31)...)
	for n := range queuesMax - 1 {
		at := Queue{lagLane, fmt.Sprint("flood-", n)}
		b.r.startQueue(&queue{Queue: at, first: 1, last: 1})
	}
	b.tick()
	fx := b.tick()
	if len(fx.Looks) != 1 {
		t.Fatal("it does not look")
	}
	b.file(false, 3, "three", series(21, 4)...)
	b.step(Looked{Look: fx.Looks[0], All: 1})
	testkit.Equal(t, "lag", b.r.Lagging(), queuesMax)
}

// TestWhatADomainHoldsItselfHalvesNothing of its own window.
func TestWhatADomainHoldsItselfHalvesNothing(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "flood", series(1, 6)...)
	b.file(false, 2, "torrent", series(11, 4)...)
	for _, domain := range []string{"flood", "torrent"} {
		b.r.lag(Queue{lagLane, domain})
	}
	b.file(false, 3, "flood", 20)
	if !b.r.QueueRoom(Queue{lagLane, "flood"}, 3) {
		t.Error("six of ten fill it")
	}
}

// TestWindowsBesideWhatLags are halved for each window of tasks or of bytes.
func TestWindowsBesideWhatLags(t *testing.T) {
	b := crowd(t)
	for _, c := range []struct {
		tasks     int
		bytes     int64
		want      int
		wantBytes int64
	}{
		{0, 0, 10, 1 << 20},
		{9, 1<<20 - 1, 10, 1 << 20},
		{10, 0, 5, 1 << 19},
		{0, 1 << 20, 5, 1 << 19},
		{20, 1 << 20, 2, 1 << 18},
		{100, 0, 1, 1 << 10},
		{109, 0, 1, 1 << 10},
		{110, 0, 0, 0},
		{0, 11 << 20, 0, 0},
	} {
		if tasks, bytes := b.r.windowBeside(c.tasks, c.bytes); tasks != c.want || bytes != c.wantBytes {
			t.Errorf("beside %d tasks and %d bytes: %d and %d", c.tasks, c.bytes, tasks, bytes)
		}
	}
}

// TestI7_WhatLagsTakesOfWhatIsShared: beside a window of it half as much is shared, and who holds more of it than a half of that
// is filed apart.
func TestI7_WhatLagsTakesOfWhatIsShared(t *testing.T) {
	b := crowd(t)
	submit := func(n int, filed, domain string) {
		b.step(&Submits{Lane: ids.LaneFirst, Domain: filed, Seq: uint64(n), Tasks: []*Entry{
			{Task: taskstate.Task{ID: id(n), Domain: domain, Tasklist: "mail", Type: "send", Priority: lagLane, Policy: storyPolicy}},
		}})
	}
	for n := range 10 {
		submit(n+1, "flood", "flood")
	}
	b.r.lag(Queue{ids.LaneFirst, "flood"})
	if tasks, bytes := b.r.Shareable(0); tasks != 2 || bytes != 1<<18 {
		t.Errorf("%d tasks and %d bytes may be shared", tasks, bytes)
	}
	if submit(11, "", "shop"); len(b.r.Apart()) != 1 {
		t.Errorf("%v with one of two", b.r.Apart())
	}
	if submit(12, "", "shop"); len(b.r.Apart()) != 2 {
		t.Error("who holds two of two is not filed apart")
	}
}

// TestALaneThatHadRoomIsNotLookedAtAtOnce when it has none again.
func TestALaneThatHadRoomIsNotLookedAtAtOnce(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "flood", series(1, 10)...)
	b.tick()
	b.r.leave(b.r.tasks[id(1)])
	b.tick()
	b.file(false, 2, "flood", 11)
	if fx := b.tick(); len(fx.Looks) > 0 {
		t.Error("it is")
	}
	if fx := b.tick(); len(fx.Looks) != 1 {
		t.Error("it is not looked at any more")
	}
}

// TestI11_AllThatLagAreFiledApart, however many: what lags and comes with others is read whatever it holds, and takes the
// lane's window from everybody.
func TestI11_AllThatLagAreFiledApart(t *testing.T) {
	const floods = 100
	b := crowd(t)
	for n := range floods {
		b.file(false, uint64(n+1), fmt.Sprint("flood-", n), n+1)
		b.r.lag(Queue{lagLane, fmt.Sprint("flood-", n)})
	}
	if all := b.r.Apart(); len(all) != floods {
		t.Errorf("%d of %d are filed apart", len(all), floods)
	}
}

// TestI11_WhoFloodsFasterThanItIsCountedLags, after a few counts in a row that were unsure.
func TestI11_WhoFloodsFasterThanItIsCountedLags(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "flood", series(1, 10)...)
	look := func(unsure bool) {
		t.Helper()
		for range 2 * lookAgainMS / congestedMS {
			if fx := b.tick(); len(fx.Looks) > 0 {
				b.step(Looked{Look: fx.Looks[0], All: 5, Own: 6, Unsure: unsure})
				return
			}
		}
		t.Fatal("it does not look")
	}
	for range unsureMax - 1 {
		look(true)
	}
	look(false)
	for range unsureMax - 1 {
		look(true)
	}
	if b.r.Lagging() > 0 {
		t.Error("it lags though a count was sure")
	}
	if look(true); b.r.Lagging() != 1 {
		t.Error("it does not lag")
	}
}
