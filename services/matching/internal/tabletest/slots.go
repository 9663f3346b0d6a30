package tabletest

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const pay = table.Ref("type/pay")

// stance is how a shard stands with the limit of type pay.
func stance(most, held, wait int) table.Stance {
	return table.Stance{Ref: pay, Max: most, Held: held, Wait: wait, TTL: time.Minute}
}

// state has a shard state its stance, and wants nothing.
func (r *rig) state(shard int, s table.Stance) table.LimitState {
	r.Helper()
	return r.do(shard, table.Call{Stances: []table.Stance{s}}).Limits[0]
}

// everywhere has all shards state that they hold nothing.
func (r *rig) everywhere(refs ...table.Ref) {
	r.Helper()
	for i := range r.shards {
		for _, ref := range refs {
			r.do(i, table.Call{Stances: []table.Stance{{Ref: ref, Max: 1}}})
		}
	}
}

// book has a shard ask for n triggers of type pay, of which it has more. It returns how
// many it got, and why not all ("" = it got all).
func (r *rig) book(shard, n int, s table.Stance) (int, string, table.LimitState) {
	r.Helper()
	got, out := r.starts(shard, n, s)
	return got, blockedBy(out.Taken[0]), out.Limits[0]
}

// books checks what book gives.
func (r *rig) books(shard, n int, s table.Stance, got int, why string) table.LimitState {
	r.Helper()
	g, w, state := r.book(shard, n, s)
	if why != "" {
		why = string(s.Ref) + " " + why
	}
	r.equal(fmt.Sprintf("shard %d books %d with %+v", shard, n, s), fmt.Sprint(g, " ", w), fmt.Sprint(got, " ", why))
	return state
}

func (r *rig) slots(refs ...table.Ref) int {
	r.Helper()
	counts, err := r.shards[0].Slots(r.Context(), domain, refs)
	if err != nil {
		r.Fatal(err)
	}
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

func setAside(r *rig) {
	r.put(0, chunk(1, "pay", 1, 1, 3), chunk(2, "pay", 2, 10, 3), chunk(3, "mail", 3, 20, 2))
	wants := []table.Want{{Tasklist: list, N: 10, Candidates: []table.Candidate{candidate(1, "pay", 1, 0), candidate(2, "pay", 2, 0), candidate(3, "mail", 3)}}}
	ask := func(s table.Stance, taken string, used int) table.Taken {
		r.Helper()
		out := r.do(0, table.Call{Stances: []table.Stance{s}, Wants: wants})
		r.equal("taken", numbers(out.Taken[0]), taken)
		r.equal("limit", out.Limits[0], table.LimitState{Used: used})
		r.equal("slots", r.slots(pay), used)
		return out.Taken[0]
	}
	full := []table.Blocked{{By: pay, Why: table.Full}}
	got := ask(stance(2, 0, 1), "1 2 20 21", 2)
	r.equal("blocked", got.Blocked, full)
	r.equal("booked", []bool{got.Batches[0].Booked, got.Batches[1].Booked}, []bool{true, false})
	r.equal("blocked", ask(stance(2, 2, 1), "", 2).Blocked, full)
	r.equal("blocked", ask(stance(2, 1, 1), "3", 2).Blocked, full)
	// The limit was raised: both are taken, and one trigger is left for nothing.
	r.equal("blocked", ask(stance(4, 2, 1), "10 11", 4).Blocked, full)
	if got := ask(stance(9, 4, 1), "12", 5); got.Blocked != nil {
		r.Fatalf("blocked: %+v", got.Blocked)
	}
}

// wantsShare: the wants of one call share what is free.
func wantsShare(r *rig) {
	r.put(0, chunk(3, "pay", 1, 1, 5))
	w := table.Want{Tasklist: list, N: 2, Candidates: []table.Candidate{candidate(3, "pay", 1, 0)}}
	out := r.do(0, table.Call{Stances: []table.Stance{stance(3, 0, 3)}, Wants: []table.Want{w, w, w}})
	r.equal("taken", []string{numbers(out.Taken[0]), numbers(out.Taken[1]), numbers(out.Taken[2])}, []string{"1 2", "3", ""})
	for i, blocked := range []int{0, 1, 1} { // a slot was left for the second
		r.equal(fmt.Sprint("blocked of want ", i), len(out.Taken[i].Blocked), blocked)
	}
	r.equal("limit", out.Limits[0], table.LimitState{Used: 3})
}

// levels: a trigger takes a slot of each limit of its path, or none.
func levels(r *rig) {
	r.put(0, chunk(3, "pay", 1, 1, 4), chunk(3, "mail", 2, 10, 4))
	wants := []table.Want{{Tasklist: list, N: 9, Candidates: []table.Candidate{candidate(3, "pay", 1, 0, 2), candidate(3, "mail", 2, 1, 2)}}}
	ask := func(pay, mail, all int) table.Outcome {
		r.Helper()
		return r.do(0, table.Call{Wants: wants, Stances: []table.Stance{
			{Ref: "type/pay", Max: pay}, {Ref: "type/mail", Max: mail}, {Ref: "domain", Max: all},
		}})
	}
	used := func(out table.Outcome) string {
		return fmt.Sprint(out.Limits[0].Used, out.Limits[1].Used, out.Limits[2].Used)
	}
	out := ask(2, 1, 9)
	r.equal("taken", numbers(out.Taken[0]), "1 2 10")
	r.equal("used", used(out), "2 1 3")
	r.equal("blocked", out.Taken[0].Blocked, []table.Blocked{{By: "type/pay", Why: table.Full}, {At: 1, By: "type/mail", Why: table.Full}})
	out = ask(9, 9, 3) // held is nothing again: the upper level decides
	r.equal("taken", numbers(out.Taken[0]), "3 4 11")
	r.equal("used", used(out), "2 1 3")
	r.equal("blocked", out.Taken[0].Blocked, []table.Blocked{{At: 2, By: "domain", Why: table.Full}})
}

// absolute: an entry is what its shard says, however often, and what it was granted.
func absolute(r *rig) {
	r.everywhere(pay)
	r.books(0, 3, stance(10, 0, 3), 3, "")
	r.equal("after a lost outcome", r.state(0, stance(10, 0, 0)).Used, 0)
	r.equal("after", r.state(0, stance(10, 4, 0)).Used, 4)
	r.equal("other", r.state(1, stance(10, 5, 0)).Used, 9)
	r.equal("then", r.books(0, 3, stance(10, 4, 3), 1, "full").Used, 10)
	r.equal("slots", r.slots(pay), 10)
	r.equal("slots", r.slots(pay, "type/none"), 10)
}

func overtaken(r *rig) {
	wants := []table.Want{{Tasklist: list, N: 1, Candidates: []table.Candidate{candidate(3, "pay", 1, 1)}}}
	late := r.call(0, table.Call{Stances: []table.Stance{{Ref: "type/x", Max: 5, Held: 3}, stance(5, 2, 0)}, Put: []table.Chunk{chunk(3, "pay", 1, 1, 3)}, Wants: wants})
	r.state(0, stance(5, 1, 0))
	carried := r.calls
	refused := func(what string, c table.Call) {
		r.Helper()
		r.equal(what, r.send(c), table.Outcome{Overtaken: true})
		r.equal(what+": slots", r.slots(pay, "type/x"), 1)
		r.equal(what+": triggers", numbers(r.pop(9, candidate(3, "pay", 1))), "")
	}
	refused("an earlier call", late)
	again := late
	again.Seq.Call = carried
	refused("the same call", again)
	// A new owner counts its calls again.
	next := r.call(0, table.Call{Stances: []table.Stance{stance(5, 1, 0)}})
	next.Seq = table.Seq{Epoch: 2, Call: 1}
	r.equal("of a new owner", r.send(next).Overtaken, false)
	late.Seq.Call = 1 << 40
	refused("a call of the old owner", late)
	next.Seq.Call, next.Stances = 2, []table.Stance{{Ref: "type/x", Max: 5}, stance(5, 1, 0)}
	r.equal("a later one", r.send(next).Overtaken, false)
}

func wholeOnly(r *rig) {
	r.equal("alone", r.books(0, 3, stance(9, 2, 3), 0, "restoring"), table.LimitState{Used: 2, Restoring: true})
	r.equal("two of three", r.books(1, 3, stance(9, 2, 3), 0, "restoring"), table.LimitState{Used: 4, Restoring: true})
	r.equal("all", r.books(2, 3, stance(9, 4, 1), 1, "full"), table.LimitState{Used: 9, Others: true})
	r.forget()
	r.books(0, 3, stance(9, 2, 3), 0, "restoring")
	r.books(0, 3, stance(9, 2, 3), 0, "restoring") // twice the same shard is one
	r.books(1, 3, stance(9, 2, 3), 0, "restoring")
	r.books(2, 1, stance(9, 5, 3), 0, "full")
}

func lowered(r *rig) {
	r.everywhere(pay)
	r.books(0, 5, stance(9, 0, 3), 5, "")
	r.state(1, stance(9, 3, 0))
	r.equal("lowered", r.books(0, 1, stance(4, 5, 3), 0, "full").Used, 8)
	r.books(0, 1, stance(4, 1, 3), 0, "full")
	r.books(0, 2, stance(4, 0, 3), 1, "full")
}

// expiry: the entry of a shard without an owner counts until its attempts must be over,
// and five minutes more; the limit is whole even so.
func expiry(r *rig) {
	r.everywhere(pay)
	s := stance(4, 3, 0)
	s.TTL = time.Hour
	r.state(1, s)
	s.TTL = 0
	r.state(1, s) // never moved to an earlier time
	r.store.Pass(time.Hour + 4*time.Minute)
	r.books(0, 4, stance(4, 0, 0), 1, "full")
	r.equal("slots", r.slots(pay), 4)
	r.store.Pass(2 * time.Minute)
	r.equal("slots", r.slots(pay), 1)
	r.books(0, 9, stance(4, 1, 0), 3, "full")
	r.equal("the shard is back", r.state(1, stance(4, 2, 0)), table.LimitState{Used: 6})
	// Without a time to live it is five minutes.
	r.store.Pass(7 * time.Minute)
	s.TTL = -time.Hour
	s.Held = 1
	r.equal("again", r.state(1, s), table.LimitState{Used: 1})
	r.store.Pass(4*time.Minute + 50*time.Second)
	r.equal("slots", r.slots(pay), 1)
	r.store.Pass(20 * time.Second)
	r.equal("slots", r.slots(pay), 0)
}

// turns: two shards, one slot; each gives it back and wants it again at once.
func turns(r *rig) {
	r.everywhere(pay)
	r.state(0, stance(1, 1, 0))
	r.books(1, 1, stance(1, 0, 3), 0, "full")
	var got []int
	held := []int{1, 0}
	for range 8 {
		for i := range held {
			if held[i] > 0 { // the attempt is over, and the next trigger waits
				held[i] = 0
				if n, _, state := r.book(i, 1, stance(1, 0, 3)); n > 0 {
					r.Fatalf("shard %d, which had the slot, got it again: %+v", i, state)
				} else if !state.Others {
					r.Fatal("others wait, and this was not reported")
				}
			} else if n, why, _ := r.book(i, 1, stance(1, 0, 3)); n > 0 {
				held[i] = 1
				got = append(got, i)
			} else if why == "" {
				r.Fatal("got nothing, and no reason")
			}
		}
	}
	ones := 0
	for i, shard := range got {
		ones += shard
		if i > 0 && shard == got[i-1] {
			r.Fatalf("the slot went to %v", got)
		}
	}
	if len(got) < 4 || ones == 0 || ones == len(got) {
		r.Fatalf("the slot went to %v", got)
	}
}

// priorities: the most urgent waits in front, whenever it came.
func priorities(r *rig) {
	r.everywhere(pay)
	r.books(0, 2, stance(2, 0, 3), 2, "full") // and waits for more
	r.books(1, 2, stance(2, 0, 3), 0, "full")
	r.books(2, 1, stance(2, 0, 1), 0, "full")
	r.equal("freed", r.state(0, stance(2, 0, 0)), table.LimitState{Others: true})
	r.books(1, 2, stance(2, 0, 3), 1, "in line") // one is kept for shard 2
	r.books(0, 1, stance(2, 0, 0), 0, "in line") // who does not wait is behind all
	r.books(2, 1, stance(2, 0, 1), 1, "full")
	r.equal("both are taken", r.state(1, stance(2, 1, 0)), table.LimitState{Used: 2, Others: true})
	// The urgent one waits for what is not urgent any more.
	r.books(0, 1, stance(2, 0, 2), 0, "full")
	r.state(2, stance(2, 0, 3))
	r.books(2, 1, stance(2, 0, 3), 0, "in line")
	r.books(0, 1, stance(2, 0, 2), 1, "full")
}

// reserved: as much is kept for those before as they lacked.
func reserved(r *rig) {
	r.everywhere(pay)
	r.state(0, stance(5, 5, 0))
	r.books(1, 2, stance(5, 0, 3), 0, "full") // lacks two
	r.books(0, 5, stance(5, 0, 3), 3, "in line")
	r.equal("one more for who is before", r.books(1, 1, stance(5, 0, 3), 1, "").Others, true)
	r.books(0, 1, stance(5, 3, 3), 1, "full")
	// A shard that got all it wanted does not wait.
	r.equal("no one waits", r.state(0, stance(5, 4, 0)), table.LimitState{Used: 5})
	r.books(1, 1, stance(5, 0, 0), 1, "full")
	// A shard that only says that it waits keeps one slot.
	r.state(0, stance(5, 0, 3))
	r.books(1, 9, stance(5, 1, 3), 3, "in line")
}

// leases: slots are kept for attempts to come, as long as no one waits for them.
func leases(r *rig) {
	r.everywhere(pay)
	s := stance(30, 2, 0)
	s.Ask = 100
	r.equal("its share of what is free", r.state(0, s), table.LimitState{Used: 11, Leased: 9}) // of three shards
	r.equal("slots", r.slots(pay), 11)
	s.Held, s.Ask = 11, 4
	r.equal("a little more", r.state(0, s), table.LimitState{Used: 15, Leased: 4})
	r.equal("wants come first", r.books(1, 13, s, 4, "full"), table.LimitState{Used: 30})
	s.Held, s.Ask = 0, 0
	r.books(0, 1, s, 1, "") // what is not held is free again
	s = stance(30, 0, 3)
	s.Ask = 4
	r.books(1, 29, s, 29, "full")
	r.state(0, stance(30, 1, 3)) // waits
	r.equal("not where others wait", r.state(1, s), table.LimitState{Used: 1, Others: true})
	r.forget()
	r.equal("not before all have reported", r.state(0, s), table.LimitState{Restoring: true})
}

// readAhead: what a chunk holds beyond what has slots comes along, if it is wanted.
func readAhead(r *rig) {
	r.everywhere(pay)
	r.put(0, chunk(1, "pay", 1, 1, 3), chunk(2, "pay", 2, 10, 6), chunk(3, "mail", 3, 20, 4))
	want := table.Want{Tasklist: list, Candidates: []table.Candidate{candidate(1, "pay", 1, 0), candidate(2, "pay", 2, 0), candidate(3, "mail", 3)}}
	take := func(n, ahead, most int, got, over string) {
		r.Helper()
		want.N, want.Ahead = n, ahead
		out := r.do(0, table.Call{Stances: []table.Stance{stance(most, 0, 1)}, Wants: []table.Want{want}}).Taken[0]
		r.equal("taken", numbers(out), got)
		rest := table.Taken{}
		gone := 0
		for _, b := range out.Batches {
			rest.Batches = append(rest.Batches, table.Batch{Triggers: b.Ahead})
			gone += len(b.Triggers)/ids.TriggerBytes + len(b.Ahead)/ids.TriggerBytes
		}
		r.equal("ahead", numbers(rest), over)
		for _, h := range out.Heads {
			gone -= h.Gone
		}
		r.equal("reported as gone, and not taken", gone, 0)
	}
	take(2, 0, 9, "1 2", "")
	take(9, 3, 2, "3 10 20 21 22 23", "") // five would be ahead: the chunk is cut
	take(1, 9, 9, "11", "")               // the want has all
	take(1, 9, 1, "12", "13 14 15")
	r.put(0, chunk(2, "pay", 4, 30, 4), chunk(2, "pay", 5, 40, 4), chunk(3, "mail", 6, 50, 3))
	take(9, 9, 1, "30 50 51 52", "31 32 33") // there is no slot
	take(9, 9, 9, "40 41 42 43", "")
	take(9, 9, 9, "", "")
}

func stale(r *rig) {
	r.everywhere(pay)
	r.state(0, stance(1, 1, 0))
	r.books(1, 1, stance(1, 0, 3), 0, "full")
	r.store.Pass(2 * time.Second)
	r.books(0, 1, stance(1, 0, 3), 0, "in line")
	r.state(1, stance(1, 0, 3)) // shows itself
	r.store.Pass(2 * time.Second)
	r.books(0, 1, stance(1, 0, 3), 0, "in line")
	r.store.Pass(2 * time.Second)
	r.equal("no one else waits", r.books(0, 1, stance(1, 0, 3), 1, "full").Others, false)
	r.books(1, 1, stance(1, 0, 3), 0, "full") // at the end of the line
	r.state(0, stance(1, 0, 3))
	r.books(1, 1, stance(1, 0, 3), 0, "in line")
}

func dropped(r *rig) {
	r.everywhere(pay, "type/mail")
	r.state(0, stance(9, 2, 0))
	r.do(0, table.Call{Stances: []table.Stance{{Ref: "type/mail", Max: 9, Held: 3}}})
	r.drop(pay)
	if err := r.shards[0].Drop(r.Context(), "unknown", pay); err != nil {
		r.Fatal(err)
	}
	r.equal("slots", r.slots(pay, "type/mail"), 3)
	r.books(0, 1, stance(9, 1, 0), 0, "restoring")
	r.books(1, 1, stance(9, 0, 0), 1, "")
}
