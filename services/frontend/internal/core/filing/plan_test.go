package filing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const most = 400 << 10

func request(lane ids.Lane, domain, tasklist string, tasks int) Request {
	return Request{Destination: Destination{lane, domain, tasklist}, Tasks: tasks, Bytes: 500 * tasks}
}

// roomOf is room for so many tasks and bytes.
func roomOf(tasks, bytes int64) *Room { return &Room{left: load{tasks: tasks, bytes: bytes}} }

// take spends room where there is enough.
func (r *Room) take(tasks, bytes int) bool {
	if !r.has(tasks, bytes) {
		return false
	}
	r.charge(tasks, bytes)
	return true
}

func plenty() *Room { return roomOf(1<<30, 1<<40) }

func want(t *testing.T, got []Message, want ...Message) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// What is alone in a flush is read eagerly too, while there is room; else it has its subject.
func TestWhatIsAlone(t *testing.T) {
	for lane := range ids.Lane(ids.Lanes) {
		requests := []Request{request(lane, "shop", "mail", 2), request(lane, "shop", "mail", 1)}
		its := Message{requests[0].Destination, []int{0, 1}}
		want(t, plan(t, requests, &Room{}, most), its)
		room := plenty()
		if lane == ids.LaneFirst || lane == ids.LaneLater { // which is read eagerly
			want(t, plan(t, requests, room, most), its)
		} else {
			want(t, plan(t, requests, room, most), Message{Destination{Lane: ids.LaneFirst}, []int{0, 1}})
		}
		if spent := room.left != plenty().left; spent != (lane != ids.LaneLater) {
			t.Errorf("lane %v: left %+v", lane, room.left)
		}
	}
}

// I11: urgent tasks take of the room too, what they share and what has a message of its own. Others that
// were filed behind a flood of them would wait on disk until its worker comes.
func TestI11_UrgentTasksTakeOfTheRoom(t *testing.T) {
	flood, small := request(ids.LaneFirst, "flood", "bulk", OwnTasks), request(3, "shop", "mail", 1)
	room := roomOf(OwnTasks, 1<<40)
	first := Message{Destination{Lane: ids.LaneFirst}, []int{1}}
	want(t, plan(t, []Request{flood, small}, room, most), first, Message{flood.Destination, []int{0}})
	if room.left.tasks != -1 {
		t.Errorf("%+v is left", room.left)
	}
	want(t, plan(t, []Request{small}, room, most), Message{small.Destination, []int{0}})
	room.Landed(7)
	room.Report(OwnTasks, 1<<40, 6)
	want(t, plan(t, []Request{small}, room, most), Message{small.Destination, []int{0}})
	room.Report(OwnTasks, 1<<40, 7)
	want(t, plan(t, []Request{small}, room, most), Message{Destination{Lane: ids.LaneFirst}, []int{0}})
}

// However much is filed that its owner does not read, what is kept of it is bounded, and forgotten once it is read.
func TestWhatIsNotReadIsBounded(t *testing.T) {
	room := plenty()
	for seq := range uint64(10 * sentMax) {
		room.charge(1, 10)
		room.Landed(seq + 1)
	}
	if len(room.sent) > sentMax {
		t.Errorf("%d loads are kept", len(room.sent))
	}
	room.Report(10*sentMax, 1<<20, 0)
	if room.left.tasks != 0 {
		t.Errorf("%+v is left", room.left)
	}
	room.Report(10, 100, 10*sentMax)
	if len(room.sent) > 0 || room.left != (load{tasks: 10, bytes: 100}) {
		t.Errorf("%v is kept, %+v is left", room.sent, room.left)
	}
}

func TestSmallOnesShareManyDoNot(t *testing.T) {
	requests := []Request{
		request(3, "shop", "mail", 1),
		request(5, "flood", "bulk", OwnTasks-1),
		request(ids.LaneLater, "shop", "mail", 1),
		request(5, "flood", "bulk", 1),
		{Destination: Destination{2, "shop", ""}, Tasks: 3, Bytes: OwnBytes},
		{Destination: Destination{2, "shop", "fat"}, Tasks: 1, Bytes: OwnBytes - 1},
	}
	own := []Message{
		{requests[4].Destination, []int{4}}, // the larger one first
		{requests[1].Destination, []int{1, 3}},
	}
	room := plenty()
	want(t, plan(t, requests, room, most), append([]Message{{Destination{Lane: ids.LaneFirst}, []int{0, 2, 5}}}, own...)...)
	testkit.Equal(t, "is under way", room.flying, (load{tasks: 3, bytes: 1000 + OwnBytes - 1}))
	// Without room each lane has its own; what is alone there has its subject.
	room = roomOf(2, 1<<40)
	want(t, plan(t, requests, room, most), append([]Message{
		{requests[2].Destination, []int{2}}, {requests[5].Destination, []int{5}}, {requests[0].Destination, []int{0}},
	}, own...)...)
	if room.left != roomOf(2, 1<<40).left {
		t.Errorf("room was spent: %+v", room)
	}
}

// However many destinations have many tasks, only the largest get messages of their own.
func TestMessagesOfAFlushAreBounded(t *testing.T) {
	var requests []Request
	for i := range 100 {
		requests = append(requests, request(3, "shop", fmt.Sprintf("list%d", i), OwnTasks+i))
	}
	got := plan(t, requests, &Room{}, most)
	shared := 0
	for _, m := range got {
		if m.Tasklist == "" {
			shared++
			continue
		}
		if m.Requests[0] < 100-OwnMax {
			t.Errorf("request %d has a message of its own", m.Requests[0])
		}
	}
	tasks := 0
	for _, r := range requests[:100-OwnMax] {
		tasks += r.Tasks
	}
	if parts := (500*tasks-1)/(most-500*(OwnTasks+100)) + 1; shared > parts || len(got) != shared+OwnMax {
		t.Errorf("%d messages, %d of them shared", len(got), shared)
	}
}

func TestTheFirstRoom(t *testing.T) {
	r := NewRoom()
	if !r.take(RoomTasksFirst, RoomBytesFirst) || r.take(1, 0) || r.take(0, 1) {
		t.Error("it is not what it says")
	}
}

// Room is what is reported, less what is not read as of the report: on its way or in the log.
func TestRoomIsWhatIsReportedLessWhatWasSent(t *testing.T) {
	var r Room
	left := func(tasks, bytes int64) {
		t.Helper()
		if r.left != (load{tasks: tasks, bytes: bytes}) {
			t.Fatalf("%+v is left, want %d tasks of %d bytes", r.left, tasks, bytes)
		}
	}
	r.Report(10, 100, 5)
	if r.take(11, 1) || r.take(1, 101) || !r.take(3, 30) || r.take(8, 1) || r.take(1, 71) {
		t.Fatal("the reported room is not what it says")
	}
	left(7, 70)
	r.Report(10, 100, 5) // it is on its way
	left(7, 70)
	r.Landed(8)
	r.Report(10, 100, 7) // it is not read
	left(7, 70)
	if !r.take(7, 1) {
		t.Fatal("what is left cannot be had")
	}
	r.Report(1, 100, 7) // the owner has less than was sent
	left(-9, 69)
	if r.take(0, 0) {
		t.Fatal("there is less than nothing")
	}
	r.Report(10, 100, 8)
	left(3, 99)
	r.Landed(0) // not stored
	r.Report(10, 100, 8)
	left(10, 100)
	r.Landed(9) // nothing was on its way
	r.Report(-5, -5, 0)
	left(0, 0)
	if len(r.sent) != 0 {
		t.Errorf("%v is kept", r.sent)
	}
}

// plan is Plan of what all has a place in one flush.
func plan(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, requests []Request, room *Room, bytesMax int,
) []Message {
	t.Helper()
	messages, late := Plan(requests, room, bytesMax)
	if len(late) > 0 {
		t.Fatalf("%v are late", late)
	}
	return messages
}

// Whatever is in a flush: each request is in one message, in its order, where it may be; no message is
// too long but for a request that is alone; and their number is bounded.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		var requests []Request
		tasks, bytes := 0, 0
		for range draw("requests", 1, 60) {
			r := Request{
				Destination: Destination{ids.Lane(draw("lane", 0, 5)), fmt.Sprint("d", draw("domain", 0, 3)), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tasklist")},
				Tasks:       draw("tasks", 1, 20), Bytes: draw("bytes", 1, 150), Apart: rapid.Bool().Draw(t, "apart"), ListApart: rapid.Bool().Draw(t, "list apart"),
			}
			requests = append(requests, r)
			tasks += r.Tasks
			bytes += r.Bytes
		}
		room := roomOf(int64(draw("room", 0, tasks)), int64(bytes))
		bytesMax := draw("most", 50, 300)
		messages := plan(t, requests, room, bytesMax)
		seen := make([]bool, len(requests))
		urgent, parts := 0, 0
		for _, m := range messages {
			size := 0
			for k, i := range m.Requests {
				r := requests[i]
				if seen[i] || k > 0 && m.Requests[k-1] > i {
					t.Fatalf("request %d is out of order, or comes twice: %v", i, messages)
				}
				seen[i] = true
				size += r.Bytes
				if m.Tasklist != "" && m.Destination != r.Destination {
					t.Fatalf("request %d for %v in %v", i, r.Destination, m.Destination)
				}
				if m.Domain != "" && m.Domain != r.Domain {
					t.Fatalf("request %d of %s in a message of %s", i, r.Domain, m.Domain)
				}
				if m.Lane != r.Lane {
					if m.Lane != ids.LaneFirst || m.Tasklist != "" {
						t.Fatalf("request %d of lane %v on lane %v", i, r.Lane, m.Lane)
					}
					urgent += r.Tasks
				}
			}
			if len(m.Requests) == 0 || len(m.Requests) > 1 && size > bytesMax {
				t.Fatalf("a message of %d requests and %d bytes", len(m.Requests), size)
			}
			if 2*size > bytesMax {
				parts++
			}
		}
		if slices.Contains(seen, false) || int64(urgent) > room.flying.tasks {
			t.Fatalf("%v: %d tasks on a lane that is not theirs, room %+v", seen, urgent, room)
		}
		if most := OwnMax + ids.Lanes + 4*ids.Lanes + 2*parts; len(messages) > most {
			t.Fatalf("%d messages, want %d at most", len(messages), most)
		}
	})
}

// I11: what the owner wants apart is filed under its domain, however few, in one message for each lane, and takes nothing
// of the room. One request for several tasklists, or several, makes no difference.
func TestI11_WhatLagsIsFiledApart(t *testing.T) {
	apart := func(lane ids.Lane, tasklist string) Request {
		r := request(lane, "flood", tasklist, 1)
		r.Apart = true
		return r
	}
	requests := []Request{
		apart(1, "bulk"), request(1, "shop", "mail", 1), apart(1, "more"), apart(3, "bulk"), request(3, "flood", "bulk", 1), apart(3, ""),
	}
	room := roomOf(100, 1<<40)
	want(t, plan(t, requests, room, most),
		Message{Destination{Lane: ids.LaneFirst}, []int{1, 4}},
		Message{Destination{1, "flood", ""}, []int{0, 2}}, Message{Destination{3, "flood", ""}, []int{3, 5}})
	if room.left.tasks != 98 {
		t.Errorf("%+v is left", room.left)
	}
	want(t, plan(t, []Request{apart(3, "bulk")}, room, most), Message{Destination{3, "flood", "bulk"}, []int{0}})
}

// I11: a tasklist that the owner wants apart is filed under its tasklist, also beside a domain that is filed apart.
func TestI11_ATasklistThatLagsIsFiledApart(t *testing.T) {
	some := func(domain, tasklist string, apart, list bool) Request {
		r := request(3, domain, tasklist, 1)
		r.Apart, r.ListApart = apart, list
		return r
	}
	requests := []Request{
		some("shop", "bulk", false, true), some("shop", "mail", false, false), some("flood", "bulk", true, true), some("flood", "mail", true, false),
		some("flood", "more", true, false), some("shop", "bulk", false, true), some("depot", "mail", false, false),
	}
	room := roomOf(100, 1<<40)
	want(t, plan(t, requests, room, most),
		Message{Destination{Lane: ids.LaneFirst}, []int{1, 6}}, Message{Destination{3, "shop", "bulk"}, []int{0, 5}},
		Message{Destination{3, "flood", "bulk"}, []int{2}}, Message{Destination{3, "flood", ""}, []int{3, 4}})
	if room.left.tasks != 98 {
		t.Errorf("%+v is left", room.left)
	}
}

// I7: what is filed apart takes nothing of the room of the most urgent lane, also if it belongs there; and a batch keeps its own message in a domain that
// is filed apart.
func TestI7_WhatIsFiledApartLeavesTheRoom(t *testing.T) {
	list, first, second := request(ids.LaneFirst, "shop", "bulk", 1), request(3, "flood", "+a", 1), request(3, "flood", "+b", 1)
	list.ListApart = true
	first.Apart, first.Alone, second.Apart, second.Alone = true, true, true, true
	room := roomOf(100, 1<<40)
	want(t, plan(t, []Request{list, first, second}, room, most), Message{Destination{ids.LaneFirst, "shop", "bulk"}, []int{0}},
		Message{Destination{3, "flood", "+a"}, []int{1}}, Message{Destination{3, "flood", "+b"}, []int{2}})
	testkit.Equal(t, "tasks left", room.left.tasks, 100)
}

// However many domains the owner wants apart, a flush has not more messages than so many; what others share has nothing of
// them, and the rest waits for the next flush.
func TestMessagesApartAreBounded(t *testing.T) {
	var requests []Request
	for i := range 2 * ApartMax {
		r := request(3, fmt.Sprint("flood", i), "bulk", 1)
		r.Apart = true
		requests = append(requests, r)
	}
	got, late := Plan(requests, plenty(), most)
	if len(got) != ApartMax || len(late) != ApartMax || late[0] != ApartMax {
		t.Errorf("%d messages, %v are late", len(got), late)
	}
}

// TestI11_ADomainOfManyBatchesLeavesOthersTheirPlaces in a flush: of its own only so many go with it, and the others of the flush do.
func TestI11_ADomainOfManyBatchesLeavesOthersTheirPlaces(t *testing.T) {
	var requests []Request
	for i := range 3 * ApartMax {
		flood := request(3, "flood", fmt.Sprint("+", i), 1)
		flood.Alone = true
		requests = append(requests, flood)
	}
	small := request(3, "shop", "+a", 1)
	small.Alone = true
	requests = append(requests, small)
	messages, late := Plan(requests, plenty(), most)
	stored := map[string]int{}
	for _, m := range messages {
		stored[m.Domain]++
	}
	if stored["shop"] != 1 || stored["flood"] != AloneMax || len(late) != len(requests)-1-AloneMax {
		t.Errorf("%v are stored, %d are late", stored, len(late))
	}
}

// The rest grows from nothing for one event to RestShare times what the message took, and is bounded.
func TestTheRestGrowsWithItsCompany(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		n          int
		took, rest time.Duration
	}{
		{1, 10 * ms, 0},
		{1, time.Hour, 0},
		{2, 8 * ms, ms},
		{13, 4 * ms, 6 * ms},
		{25, 4 * ms, 12 * ms},
		{1000, 4 * ms, 12 * ms},
		{25, 7 * ms, 20 * ms},
		{1000, time.Hour, 20 * ms},
	} {
		if rest := Rest(c.n, c.took); rest != c.rest {
			t.Errorf("after %d events in %v it rests for %v, want %v", c.n, c.took, rest, c.rest)
		}
	}
	if rest := Rest(0, time.Second); rest > 0 {
		t.Errorf("after nothing it rests for %v", rest)
	}
}
