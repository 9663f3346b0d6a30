package tabletest

import (
	"fmt"
	"time"

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
