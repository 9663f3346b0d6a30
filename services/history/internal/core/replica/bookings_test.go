package replica

import (
	"fmt"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// book starts tasks that hold slots in limits.
func (b *bench) book(limits *taskstate.Path, tasks ...int) {
	b.Helper()
	for _, n := range tasks {
		e := b.r.tasks[id(n)]
		b.seq++
		b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{
			Kind: taskstate.Started, ID: id(n), Fence: ids.Token{Position: e.Position, Version: e.Version + 1, Nonce: uint64(b.seq)}, Limits: limits,
		}}})
	}
}

// pages spells all pages of a query, and how many there are.
func (b *bench) pages(q dispatch.BookingsQuery) (all []string, pages int) {
	for ; pages < 99; pages++ {
		page := b.r.Bookings(q)
		for _, g := range page.Groups {
			var tasks []int
			for p := g.Packed; len(p) > 0; p = p[ids.BookingBytes:] {
				tasks = append(tasks, int(p[15]))
			}
			all = append(all, fmt.Sprintf("%s/%s/%s in %q %v +%d", g.Domain, g.Tasklist, g.Type, g.Limits, tasks, g.DeadlineAt-scenarioStart))
		}
		if q.After = page.Last; page.Last.IsZero() {
			return all, pages + 1
		}
	}
	return all, pages
}

// TestR39BookingsComeInPages: the attempts of a shard that hold slots, by domain, tasklist, type and path; and all
// that run, of some types or any.
func TestR39BookingsComeInPages(t *testing.T) {
	b := newBench(t, smallConfig())
	bill := func(t *taskstate.Task) { t.Type = "bill" }
	b.submit(nil, 1, 2, 3, 4, 5)
	b.submit(bill, 6, 7)
	b.submit(func(t *taskstate.Task) { t.Domain = "bank" }, 8)
	send, two := taskstate.NewPath("type/send"), taskstate.NewPath("domain", "type/send")
	b.book(send, 3, 1)
	b.now.MS += 5
	b.book(taskstate.NewPath("domain", "type/send"), 2)
	b.book(two, 4)
	b.book(nil, 5, 6)
	b.book(taskstate.NewPath("type/bill"), 7)
	b.book(send, 8)
	check := func(what string, q dispatch.BookingsQuery, wantPages int, want ...string) {
		t.Helper()
		if got, pages := b.pages(q); !slices.Equal(got, want) || pages != wantPages {
			t.Errorf("%s: %d pages\n%q, want %d\n%q", what, pages, got, wantPages, want)
		}
	}
	all := []string{`shop/mail/send in "type/send" [1 3] +9000`, `shop/mail/send in "domain type/send" [2 4] +9005`, `shop/mail/bill in "type/bill" [7] +9005`}
	check("of all domains", dispatch.BookingsQuery{BytesMax: 1 << 20}, 1, append(slices.Clone(all), `bank/mail/send in "type/send" [8] +9005`)...)
	check("of one", dispatch.BookingsQuery{Domain: "shop", BytesMax: 1 << 20}, 1, all...)
	check("of none", dispatch.BookingsQuery{Domain: "other", BytesMax: 1 << 20}, 1)
	check("of another shard", dispatch.BookingsQuery{Shard: 1, BytesMax: 1 << 20}, 1)
	check("all that run of a type", dispatch.BookingsQuery{Domain: "shop", Types: []string{"bill", "none"}, BytesMax: 1 << 20}, 1,
		`shop/mail/bill in "" [6] +9005`, `shop/mail/bill in "type/bill" [7] +9005`)
	check("all that run", dispatch.BookingsQuery{Domain: "shop", All: true, BytesMax: 1 << 20}, 1, append(slices.Clone(all[:2]),
		`shop/mail/send in "" [5] +9005`, `shop/mail/bill in "" [6] +9005`, all[2])...)
	check("of another shard's", dispatch.BookingsQuery{Shard: 1, Types: []string{"bill"}, BytesMax: 1 << 20}, 1)
	check("one at a time", dispatch.BookingsQuery{Domain: "shop", BytesMax: 1}, 5, `shop/mail/send in "type/send" [1] +9000`, `shop/mail/send in "domain type/send" [2] +9005`,
		`shop/mail/send in "type/send" [3] +9000`, `shop/mail/send in "domain type/send" [4] +9005`, `shop/mail/bill in "type/bill" [7] +9005`)
	check("as many as fit", dispatch.BookingsQuery{Domain: "shop", BytesMax: 2*64 + 4 + 4 + 4 + 9 + 4 + 4 + 4 + 16 + 3*20}, 2, `shop/mail/send in "type/send" [1 3] +9000`, `shop/mail/send in "domain type/send" [2] +9005`,
		`shop/mail/send in "domain type/send" [4] +9005`, `shop/mail/bill in "type/bill" [7] +9005`)

	b.finish(taskstate.Succeeded, 1)
	b.finish(taskstate.Released, 3)
	b.finish(taskstate.Heartbeat, 2)
	b.finish(taskstate.Failed, 4)
	b.event(taskstate.Cancel, 7, ids.Token{})
	check("some are over", dispatch.BookingsQuery{Domain: "shop", BytesMax: 1 << 20}, 1, `shop/mail/send in "domain type/send" [2] +9005`, `shop/mail/bill in "type/bill" [7] +9005`)
}

// TestReleasesAreGroupedByPath: of a turn, whatever the order in which the attempts end.
func TestReleasesAreGroupedByPath(t *testing.T) {
	b := newBench(t, smallConfig())
	b.submit(nil, 1, 2, 3, 4, 5)
	one, two := taskstate.NewPath("type/send"), taskstate.NewPath("domain", "type/send")
	b.book(one, 1, 3)
	b.book(two, 2)
	b.book(taskstate.NewPath("domain", "type/send"), 4) // as another reader has it
	b.book(nil, 5)
	b.seq++
	in := &Events{Seq: b.seq, At: b.now.MS}
	for n := 1; n <= 5; n++ {
		in.Events = append(in.Events, taskstate.Event{Kind: taskstate.Succeeded, ID: id(n), Fence: b.r.tasks[id(n)].Token()})
	}
	fx := b.step(in)
	var got []string
	for _, g := range fx.Releases {
		got = append(got, fmt.Sprintf("%s/%s in %q: %d", g.Domain, g.Type, g.Limits, len(g.Packed)/ids.BookingBytes))
	}
	if want := []string{`shop/send in "type/send": 2`, `shop/send in "domain type/send": 2`}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	b.submit(nil, 6)
	b.book(one, 6)
	if fx = b.finish(taskstate.Succeeded, 6); len(fx.Releases) != 1 || len(fx.Releases[0].Packed) != ids.BookingBytes {
		t.Errorf("the next turn: %+v", fx.Releases)
	}
}

// TestR39GroupsAreCutByAge: each 128 triggers that matching stores together say when the first of just
// them became ready; those of one age may be more.
func TestR39GroupsAreCutByAge(t *testing.T) {
	b := newBench(t, Config{})
	const n = 300
	b.submit(nil, upFrom(1, n)...)
	b.now.MS += 5
	b.submit(nil, upFrom(n+1, n)...)
	for late := range 200 { // each a moment later
		b.now.MS++
		b.submit(nil, 2*n+1+late)
	}
	fx := new(Effects)
	b.r.Retrigger("", -1, b.now.MS, &fx.Effects)
	var got []string
	for _, g := range fx.Triggers {
		count := len(g.Packed) / ids.TriggerBytes
		first, last := b.r.tasks[ids.TriggerAt(g.Packed, 0).ID], b.r.tasks[ids.TriggerAt(g.Packed, count-1).ID]
		if g.ReadyAt != first.ReadyAt || last.ReadyAt < first.ReadyAt {
			t.Errorf("a group of %d is of age %d, its first of %d", count, g.ReadyAt-scenarioStart, first.ReadyAt-scenarioStart)
		}
		got = append(got, fmt.Sprintf("%d at +%d", count, g.ReadyAt-scenarioStart))
	}
	// 300 of one age are filled up to 384 with 84 of the next.
	want := []string{"384 at +0", "256 at +5", "128 at +46", "32 at +174"}
	if !slices.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
}
