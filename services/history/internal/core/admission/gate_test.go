package admission

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	lane      = ids.Lane(3)
	taskBytes = 100
)

// bench drives a gate whose window takes ten tasks.
type bench struct {
	*testing.T
	g   *Gate
	now int64
	// tasks are what was admitted, in order.
	tasks []Charge
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, g: New(Config{WindowTasks: 10, WindowBytes: 1 << 20}), now: 1_700_000_000_000}
	b.looks()
	return b
}

// file reads a message of n tasks that is filed at a place, "" = of shop in one that domains share, by the lane's reader or that of the place.
func (b *bench) file(own bool, seq uint64, at ids.Place, n int) bool {
	b.Helper()
	by := ids.Place("")
	if own {
		by = at
	}
	return b.fileBy(by, seq, at, n)
}

// fileBy reads a message of n tasks that is filed at a place, by the reader of a queue.
func (b *bench) fileBy(by ids.Place, seq uint64, at ids.Place, n int) bool {
	b.Helper()
	in := b.g.Admit(Queue{lane, at}, by, seq)
	for range n {
		if in {
			task := Charge{Lane: lane, Domain: cmp.Or(at.Domain(), "shop"), Tasklist: cmp.Or(at.Tasklist(), "mail"), Shared: at == "", Bytes: taskBytes}
			b.g.Charge(task, 0)
			b.tasks = append(b.tasks, task)
		}
	}
	b.check()
	return in
}

// leave lets the first n tasks go that are there.
func (b *bench) leave(n int) {
	b.Helper()
	for _, task := range b.tasks[:n] {
		task.Bytes = 0
		b.g.Charge(task, taskBytes)
	}
	b.tasks = b.tasks[n:]
	b.check()
}

func (b *bench) check() {
	b.Helper()
	testkit.Check(b, b.g.Check(b.tasks, false))
}

// looks lets so much time pass that a lane without room is looked at.
func (b *bench) looks() []Look {
	b.now += congestedMS
	b.g.MergeBack()
	all := b.g.Congested(b.now)
	b.check()
	return all
}

// look waits for a look.
func (b *bench) look() Look {
	b.Helper()
	for range 2 * lookAgainMS / congestedMS {
		if all := b.looks(); len(all) > 0 {
			return all[0]
		}
	}
	b.Fatal("it does not look")
	return Look{}
}

// flood fills the window, and tells that so many messages wait behind it, some of them its own.
func (b *bench) flood(all, own uint64) {
	b.Helper()
	b.file(false, 1, "flood", 10)
	b.file(false, 2, "shop", 1)
	testkit.MustEqual(b, "looks at once", len(b.looks()), 0)
	found := b.looks()
	if len(found) != 1 || found[0] != (Look{Queue{lane, "flood"}, "", 2}) {
		b.Fatalf("it looks for %+v", found)
	}
	testkit.MustEqual(b, "looks meanwhile", len(b.looks()), 0)
	b.g.Counted(Counts{Look: found[0], All: all, Own: own}, b.now)
}

// splitOff is a bench whose flood is split off with its first ten tasks, and with message 3 passed over.
func splitOff(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.flood(6, 5)
	b.file(false, 3, "flood", 1)
	b.file(false, 4, "shop", 1)
	return b
}

// TestI11_WhoFillsALaneIsSplitOff, and only who holds up somebody else; one that waits for itself alone is looked at again
// after a while.
func TestI11_WhoFillsALaneIsSplitOff(t *testing.T) {
	b := newBench(t)
	b.flood(5, 5)
	inside := b.looks()
	testkit.MustEqual(t, "it looks inside", fmt.Sprint(inside), fmt.Sprint([]Look{{Queue{lane, "flood.mail"}, "flood", 2}}))
	b.g.Counted(Counts{Look: inside[0], All: 5, Own: 5}, b.now)
	if b.g.Room(lane) || b.g.Splits() > 0 {
		t.Error("a lone domain is split off")
	}
	for range lookAgainMS/congestedMS - 1 {
		testkit.MustEqual(t, "looks too soon", len(b.looks()), 0)
	}
	again := b.looks()
	testkit.MustEqual(t, "looks again", len(again), 1)
	b.g.Counted(Counts{Look: again[0], All: 6, Own: 5}, b.now)
	if !b.g.Room(lane) || !b.g.IsSplit(Queue{lane, "flood"}) || b.g.Splits() != 1 || b.g.SplitLanes("shop") != 0 {
		t.Errorf("room %v, %d are split off", b.g.Room(lane), b.g.Splits())
	}
	if b.file(false, 3, "flood", 1) || !b.file(false, 4, "shop", 1) || b.g.ReadLevels()[lane] != 4 || b.g.QueueRoom(Queue{lane, "flood"}, 3) {
		t.Error("the flood goes on")
	}
}

// TestNothingIsSplitOffWithoutAnAnswer: a count that failed says nothing.
func TestNothingIsSplitOffWithoutAnAnswer(t *testing.T) {
	b := newBench(t)
	b.flood(0, 0)
	testkit.Equal(t, "split off", b.g.Splits(), 0)
}

// TestI11_WhoFloodsFasterThanItIsCountedIsSplitOff, after a few counts in a row that were unsure.
func TestI11_WhoFloodsFasterThanItIsCountedIsSplitOff(t *testing.T) {
	b := newBench(t)
	b.file(false, 1, "flood", 10)
	count := func(unsure bool) { b.g.Counted(Counts{Look: b.look(), All: 5, Own: 6, Unsure: unsure}, b.now) }
	for range unsureMax - 1 {
		count(true)
	}
	count(false)
	for range unsureMax - 1 {
		count(true)
	}
	testkit.Equal(t, "split off though a count was sure", b.g.Splits(), 0)
	count(true)
	testkit.Equal(t, "split off", b.g.Splits(), 1)
}

// TestI11_TheLargestAreSplitOffUntilHalfIsFree: several that hold much are taken out at once, those that hold little stay.
func TestI11_TheLargestAreSplitOffUntilHalfIsFree(t *testing.T) {
	b := newBench(t)
	b.file(false, 1, "small", 1)
	b.file(false, 2, "flood", 4)
	b.file(false, 3, "shop", 1)
	b.file(false, 4, "torrent", 4)
	b.g.Counted(Counts{Look: b.look(), All: 9, Own: 1}, b.now)
	if !b.g.IsSplit(Queue{lane, "flood"}) || !b.g.IsSplit(Queue{lane, "torrent"}) || b.g.Splits() != 2 {
		t.Errorf("%+v", b.g.Readings())
	}
}

// TestALaneThatHadRoomIsNotLookedAtAtOnce when it has none again.
func TestALaneThatHadRoomIsNotLookedAtAtOnce(t *testing.T) {
	b := newBench(t)
	b.file(false, 1, "flood", 10)
	b.looks()
	b.leave(1)
	b.looks()
	b.file(false, 2, "flood", 1)
	testkit.Equal(t, "looks at once", len(b.looks()), 0)
	testkit.Equal(t, "looks", len(b.looks()), 1)
}

// TestI7_SoManyDomainsAreSplitOff and no more, also if they are taken out at once.
func TestI7_SoManyDomainsAreSplitOff(t *testing.T) {
	b := newBench(t)
	for n := range queuesMax - 1 {
		b.g.Replay(Step{Queue: Queue{lane, ids.Place(fmt.Sprint("flood-", n))}, Kind: Split, To: 0})
	}
	b.file(false, 1, "one", 4)
	b.file(false, 2, "two", 6)
	for n := range queuesMax - 1 { // each has a message left
		b.file(false, uint64(n+3), ids.Place(fmt.Sprint("flood-", n)), 1)
	}
	found := b.look()
	b.file(false, queuesMax+3, "three", 4)
	b.g.Counted(Counts{Look: found, All: 1}, b.now)
	testkit.Equal(t, "split off", b.g.Splits(), queuesMax)
}

// TestI7_FloodsAreBounded: however many domains fill a lane one after the other, what all of them hold is.
func TestI7_FloodsAreBounded(t *testing.T) {
	b := newBench(t)
	seq := uint64(0)
	for n := range 300 {
		for b.g.Room(lane) {
			seq++
			b.file(false, seq, ids.Place(fmt.Sprint("flood-", n)), 1)
		}
		for range lookAgainMS / congestedMS {
			for _, found := range b.looks() {
				b.g.Counted(Counts{Look: found, All: 1}, b.now)
			}
		}
	}
	if most := (halvingsMax + 2) * 10; len(b.tasks) > most || len(b.tasks) < 50 {
		t.Errorf("%d tasks are held, at most %d may be", len(b.tasks), most)
	}
}

// TestASplitEnds when all is read and the lane has room for what is left.
func TestASplitEnds(t *testing.T) {
	b := splitOff(t)
	at := Queue{lane, "flood"}
	b.file(true, 3, "flood", 1)
	for n := range 8 { // of its eleven tasks; two of shop are in the lane, and half of ten is free for three
		if b.looks(); !b.g.IsSplit(at) {
			t.Fatalf("it ends when %d tasks have left", n)
		}
		b.leave(1)
	}
	if b.looks(); b.g.IsSplit(at) {
		t.Fatalf("it is split off: %+v", b.g.Readings())
	}
	if !b.file(false, 5, "flood", 1) || b.file(true, 5, "flood", 1) {
		t.Error("a message behind the end is not read with the lane's others, once")
	}
}

// TestASplitEndsWhereWhatIsLeftFits: a domain whose tasks of shared messages would fill the lane again stays split off.
func TestASplitEndsWhereWhatIsLeftFits(t *testing.T) {
	b := newBench(t)
	b.file(false, 1, "", 8)
	b.file(false, 2, "rival", 2)
	b.g.Counted(Counts{Look: b.look(), All: 1}, b.now)
	at := Queue{lane, "shop"}
	for range 4 {
		if b.looks(); !b.g.IsSplit(at) {
			t.Fatalf("it ends with %d tasks held", len(b.tasks))
		}
		b.leave(1)
	}
	b.leave(1)
	if b.looks(); b.g.IsSplit(at) {
		t.Errorf("it is split off with %d tasks held", len(b.tasks))
	}
}

// TestWhatADomainHoldsItselfHalvesNothing of its own window.
func TestWhatADomainHoldsItselfHalvesNothing(t *testing.T) {
	b := newBench(t)
	b.file(false, 1, "flood", 6)
	b.file(false, 2, "torrent", 4)
	for _, domain := range []ids.Place{"flood", "torrent"} {
		b.g.Replay(Step{Queue: Queue{lane, domain}, Kind: Split, To: 2})
	}
	b.file(false, 3, "flood", 1)
	if !b.g.QueueRoom(Queue{lane, "flood"}, 3) {
		t.Error("six of ten fill it")
	}
}

// TestWindowsBesideSplits are halved for each window of tasks or of bytes.
func TestWindowsBesideSplits(t *testing.T) {
	b := newBench(t)
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
		if tasks, bytes := b.g.windowBeside(c.tasks, c.bytes); tasks != c.want || bytes != c.wantBytes {
			t.Errorf("beside %d tasks and %d bytes: %d and %d", c.tasks, c.bytes, tasks, bytes)
		}
	}
}

// TestI7_HalfOfTheUrgentWindowIsShared: what others may file on the most urgent lane leaves half of its window to the tasks that belong there,
// in tasks and in bytes; what is unread counts, what has left gives its room back, and beside a window of what is split off half as much is shared.
func TestI7_HalfOfTheUrgentWindowIsShared(t *testing.T) {
	g := New(Config{WindowTasks: 1000, WindowBytes: 1 << 20})
	check := func(unread, tasks, bytes int64) {
		t.Helper()
		if n, b := g.Shareable(unread); n != tasks || b != bytes {
			t.Errorf("beside %d unread: %d tasks of %d bytes, want %d of %d", unread, n, b, tasks, bytes)
		}
	}
	charge := func(lane ids.Lane, domain string, n int, shared bool, bytes, before int32) {
		for range n {
			g.Charge(Charge{lane, domain, "mail", shared, bytes}, before)
		}
	}
	check(0, 500, 1<<19)
	check(2, 500-2*unreadTasks, 1<<19)
	check(500/unreadTasks, 0, 0)
	charge(lane, "shop", 100, false, 10, 0) // of another lane
	check(0, 500, 1<<19)
	charge(ids.LaneFirst, "shop", 300, false, 10, 0)
	check(0, 200, 1<<19-3000)
	charge(ids.LaneFirst, "shop", 200, false, 10, 0)
	check(0, 0, 0)
	charge(ids.LaneFirst, "shop", 50, false, 0, 10)
	check(0, 50, 1<<19-4500)
	charge(ids.LaneFirst, "fat", 1, false, 1<<19, 0)
	check(0, 0, 0)

	g = New(Config{WindowTasks: 10, WindowBytes: 1 << 20})
	charge(ids.LaneFirst, "flood", 10, false, 10, 0)
	g.Replay(Step{Queue: Queue{ids.LaneFirst, "flood"}, Kind: Split, To: 1})
	check(0, 2, 1<<18)
	charge(ids.LaneFirst, "shop", 1, true, 10, 0)
	testkit.Equal(t, "apart with one of two", fmt.Sprint(g.Apart()), "[flood]")
	charge(ids.LaneFirst, "shop", 1, true, 10, 0)
	testkit.Equal(t, "apart with two of two", fmt.Sprint(g.Apart()), "[flood shop]")
}

// TestWhoHoldsMuchOfWhatIsSharedIsFiledApart, and who is split off.
func TestWhoHoldsMuchOfWhatIsSharedIsFiledApart(t *testing.T) {
	b := newBench(t)
	b.file(false, 1, "", 5)
	testkit.Equal(t, "apart with half of the window left", len(b.g.Apart()), 0)
	b.file(false, 2, "", 1)
	testkit.Equal(t, "apart", fmt.Sprint(b.g.Apart()), "[shop]")
	testkit.Equal(t, "apart, who is split off", fmt.Sprint(splitOff(t).g.Apart()), "[flood]")
}

// TestI11_AllThatAreSplitOffAreFiledApart, however many: what is split off and comes with others is read whatever it holds, and takes the
// lane's window from everybody.
func TestI11_AllThatAreSplitOffAreFiledApart(t *testing.T) {
	const floods = 100
	b := newBench(t)
	for n := range floods {
		b.file(false, uint64(n+1), ids.Place(fmt.Sprint("flood-", n)), 1)
		b.g.Replay(Step{Queue: Queue{lane, ids.Place(fmt.Sprint("flood-", n))}, Kind: Split, To: 0})
	}
	testkit.Equal(t, "apart", len(b.g.Apart()), floods)
}

// TestAQueueIsNeverAheadOfItsLane, whatever room it has, and reads nothing twice.
func TestAQueueIsNeverAheadOfItsLane(t *testing.T) {
	b := splitOff(t)
	b.leave(10)
	at := Queue{lane, "flood"}
	if !b.g.QueueRoom(at, 3) || !b.g.QueueRoom(at, 4) || b.g.QueueRoom(at, 5) {
		t.Error("a message behind the lane's read level has room, or one before has none")
	}
	if !b.file(true, 3, "flood", 1) || b.file(true, 3, "flood", 1) || b.file(true, 2, "flood", 1) || b.g.Readings()[0].From != 4 {
		t.Error("a message is read again")
	}
}

// TestWhatIsUnread: what a queue was passed over for and has not read. What domains share lies in no queue.
func TestWhatIsUnread(t *testing.T) {
	b := splitOff(t)
	for _, c := range []struct {
		pos    ids.Position
		domain string
		want   bool
	}{
		{ids.NewPosition(3, lane), "flood", true},
		{ids.NewPosition(3, lane), "shop", false},
		{ids.NewPosition(3, lane).InShared(), "flood", false},
		{ids.NewPosition(9, lane), "shop", true},
		{ids.NewPosition(9, ids.Lanes), "shop", false},
	} {
		testkit.Equal(t, fmt.Sprint(c.domain, " has not read ", c.pos), b.g.Unread(c.pos, c.domain, "mail"), c.want)
	}
	b.file(true, 3, "flood", 1)
	b.file(false, 7, "shop", 1)
	b.file(false, 9, "flood", 1)
	for seq, want := range map[uint64]bool{3: false, 7: false, 9: true} {
		testkit.Equal(t, fmt.Sprint("message ", seq, " is unread"), b.g.Unread(ids.NewPosition(seq, lane), "flood", "mail"), want)
	}
}

// TestI3_StepsAreThoseOfATurn: each is noted once, in order; while a turn is being stored there are none, and those of a turn that the log refuses
// go into the next one.
func TestI3_StepsAreThoseOfATurn(t *testing.T) {
	b := newBench(t)
	b.flood(6, 5)
	b.file(false, 3, "flood", 1)
	b.file(false, 4, "shop", 1)
	want := []Step{
		{Queue: Queue{Lane: lane}, To: 2, Messages: 2},
		{Queue: Queue{lane, "flood"}, Kind: Split, To: 2},
		{Queue: Queue{Lane: lane}, To: 4, From: 2, Messages: 2},
	}
	steps := b.g.BeginTurn()
	testkit.Equal(t, "the steps", fmt.Sprint(steps), fmt.Sprint(want))
	b.leave(10)
	if b.g.MayAdmit() || b.g.QueueRoom(Queue{lane, "flood"}, 3) {
		t.Error("messages are admitted while a turn is being stored")
	}
	b.g.EndTurn(steps)
	b.file(true, 3, "flood", 1)
	b.looks()
	want = append(want, Step{Queue: Queue{lane, "flood"}, To: 3, From: 2, Messages: 1}, Step{Queue: Queue{lane, "flood"}, Kind: Merge, To: 4})
	testkit.Equal(t, "with those of the refused turn", fmt.Sprint(b.g.BeginTurn()), fmt.Sprint(want))
	b.g.EndTurn(nil)
	testkit.Equal(t, "after that", len(b.g.BeginTurn()), 0)

	again := New(Config{WindowTasks: 10, WindowBytes: 1 << 20})
	for _, s := range want {
		if again.Replay(s); s.Kind == Read {
			for seq := again.ReadLevel(s.Queue) + 1; seq <= s.To; seq++ {
				again.Admit(s.Queue, s.Place, seq)
			}
		}
	}
	testkit.Equal(t, "replayed", fmt.Sprint(again.Levels("", 0)), fmt.Sprint(b.g.Levels("", 0)))
}

// TestI7_RoomIsExact: a lane has room up to its tasks, and up to its bytes.
func TestI7_RoomIsExact(t *testing.T) {
	for _, c := range []struct {
		tasks int
		bytes int64
		want  bool
	}{
		{2, taskBytes + 1, true},
		{1, taskBytes + 1, false},
		{2, taskBytes, false},
	} {
		g := New(Config{WindowTasks: c.tasks, WindowBytes: c.bytes})
		g.Charge(Charge{Lane: lane, Domain: "shop", Tasklist: "mail", Bytes: taskBytes}, 0)
		testkit.Equal(t, fmt.Sprintf("%+v: room", c), g.Room(lane), c.want)
	}
}

// A task may lie unread in a lane, or in a queue that was split off, whose lane is read to its end.
func TestBehind(t *testing.T) {
	at := Queue{lane, "shop"}
	for seq, want := range map[uint64]bool{9: false, 4: true} {
		levels := Levels{Queues: []Level{{at, seq}}}
		levels.Lanes[lane] = 9
		if _, some := levels.Behind([ids.Lanes]uint64{lane: 9}); some != want {
			t.Errorf("a queue that is read up to %d of 9: %v", seq, some)
		}
	}
}

// What is shown of a queue is what decides whether it is read.
func TestStatesAreWhatDecidesWhatIsRead(t *testing.T) {
	b := newBench(t)
	b.file(false, 1, "flood", 12)
	b.g.Replay(Step{Queue: Queue{lane, "flood"}, Kind: Split})
	b.file(false, 2, "", 1)
	b.file(false, 3, "flood", 1) // the lane passes over it
	all := b.g.States("")
	testkit.Equal(t, "the lane", all[lane], State{Queue: Queue{Lane: lane}, Read: 3, Fill: Fill{1, 5, taskBytes, 1 << 19}})
	testkit.Equal(t, "behind the lanes", all[ids.Lanes:], []State{{Queue: Queue{lane, "flood"}, Read: 1, Fill: Fill{12, 10, 12 * taskBytes, 1 << 20}}})
	testkit.Equal(t, "of another domain", b.g.States("shop"), all[:ids.Lanes])
	testkit.Equal(t, "of the domain", b.g.States("flood"), all)
	for _, s := range all[:ids.Lanes] {
		testkit.Equal(t, "room", b.g.Room(s.Lane), s.Tasks < s.TasksMax && s.Bytes < s.BytesMax)
	}
	testkit.Equal(t, "room of the queue", b.g.Readings()[0].Room, false)
}

// What is read while a turn is being stored would be in no turn, and lost with this owner.
func TestNothingIsReadWhileATurnIsBeingStored(t *testing.T) {
	g := newBench(t).g
	g.BeginTurn()
	defer func() {
		if recover() == nil {
			t.Error("it was read")
		}
	}()
	g.Admit(Queue{Lane: lane}, "", 1)
}
