// Package tabletest is what every implementation of shard.Tables must do: one suite
// for the memory and the Redis adapter, which keeps the first an honest stand-in for
// the second. It is imported by tests only.
package tabletest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
)

// Store is one memory with the tables of several shards in it.
type Store interface {
	// Shard returns a new client of one shard.
	Shard(i int) shard.Tables
	// Forget loses everything.
	Forget()
}

// Exercise runs the suite. Each call of factory gives an empty store.
func Exercise(t *testing.T, factory func(t *testing.T) Store) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s Store)
	}{
		{"Order", order},
		{"PartlyUsedChunkKeepsItsPlace", partlyUsed},
		{"FullTypeIsSetAsideForAllPriorities", setAside},
		{"DoublesAreDropped", doubles},
		{"BookingsExpire", expiry},
		{"SettleTellsMissingAndFreed", settle},
		{"TestI5_LostMemoryIsNoticed", lostMemory},
		{"WholeOnlyWithBookings", wholeOnly},
		{"NewOwnerFindsColumns", newOwner},
		{"RestoreNeverShortens", restoreNeverShortens},
		{"BookingsAreListed", bookingsListed},
		{"ManyDomainsInOneCall", manyDomains},
		{"TestI8_TwoClientsNeverOverbook", neverOverbook},
		{"LikeTheCore", likeTheCore},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, factory(t)) })
	}
}

const domain = "shop"

var list = table.Tasklist{Domain: domain, Name: "mail"}

var now = time.Now().UnixMilli()

func trigger(n int) ids.Trigger {
	return ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(n)), Version: 1, Position: 7}
}

// chunk is n triggers numbered from first.
func chunk(priority int, typ string, readyAt int64, first, n int) table.Chunk {
	c := table.Chunk{Tasklist: list, Column: table.Column{Priority: priority, Type: typ}, ReadyAt: readyAt}
	for i := range n {
		c.Triggers = ids.AppendTrigger(c.Triggers, trigger(first+i))
	}
	return c
}

func candidate(priority int, typ string, head int64, limit int) table.Candidate {
	return table.Candidate{Column: table.Column{Priority: priority, Type: typ}, Head: head, Limit: limit}
}

// open opens the domain and declares it whole.
func open(t *testing.T, tables shard.Tables) {
	t.Helper()
	opened, err := tables.Open(t.Context(), domain)
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.Restore(t.Context(), domain, opened.Epoch, nil); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, tables shard.Tables, chunks ...table.Chunk) {
	t.Helper()
	if err := tables.Put(t.Context(), chunks); err != nil {
		t.Fatal(err)
	}
}

func pop(t *testing.T, tables shard.Tables, n int, candidates ...table.Candidate) table.Taken {
	t.Helper()
	taken, err := tables.Pop(t.Context(), []table.Want{{Tasklist: list, N: n, Candidates: candidates, Now: now, Until: now + 15_000}})
	if err != nil {
		t.Fatal(err)
	}
	return taken[0]
}

// numbers prints which triggers were taken, such as "1 2 7".
func numbers(taken table.Taken) string {
	var out []string
	for _, b := range taken.Batches {
		for i := range len(b.Triggers) / ids.TriggerBytes {
			id := ids.TriggerAt(b.Triggers, i).ID
			out = append(out, fmt.Sprint(int(id[14])<<8|int(id[15])))
		}
	}
	return strings.Join(out, " ")
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func order(t *testing.T, s Store) {
	tables := s.Shard(0)
	open(t, tables)
	put(
		t, tables, chunk(3, "late", 50, 1, 1), chunk(3, "old", 10, 2, 1), chunk(5, "low", 1, 3, 1),
		chunk(1, "urgent", 90, 4, 1), chunk(3, "old", 60, 5, 1), chunk(3, "late", 55, 6, 1),
	)
	got := pop(t, tables, 10, candidate(1, "urgent", 90, 0), candidate(3, "old", 10, 0), candidate(3, "late", 50, 0), candidate(5, "low", 1, 0))
	equal(t, "taken", numbers(got), "4 2 1 6 5 3")
	for _, h := range got.Heads {
		equal(t, "empty "+h.Type, h.Empty, true)
	}
	equal(t, "heads", len(got.Heads), 4)
	equal(t, "taken from nothing", numbers(pop(t, tables, 10, candidate(1, "urgent", 90, 0))), "")
}

func partlyUsed(t *testing.T, s Store) {
	tables := s.Shard(0)
	open(t, tables)
	// Real times: their scores need all digits.
	at := time.Now().UnixMicro()
	put(t, tables, chunk(3, "a", at, 1, 5), chunk(3, "a", at+1, 10, 5))
	put(t, tables, chunk(3, "a", at+1, 10, 5)) // repeated: nothing changes
	got := pop(t, tables, 2, candidate(3, "a", at, 0))
	equal(t, "taken", numbers(got), "1 2")
	equal(t, "heads", got.Heads, []table.Head{{Column: table.Column{Priority: 3, Type: "a"}, ReadyAt: at, Gone: 2}})
	got = pop(t, tables, 5, candidate(3, "a", at, 0))
	equal(t, "then", numbers(got), "3 4 5 10 11")
	equal(t, "heads", got.Heads, []table.Head{{Column: table.Column{Priority: 3, Type: "a"}, ReadyAt: at + 1, Gone: 5}})
}

func setAside(t *testing.T, s Store) {
	tables := s.Shard(0)
	open(t, tables)
	put(t, tables, chunk(1, "pay", 1, 1, 3), chunk(2, "pay", 2, 10, 3), chunk(3, "mail", 3, 20, 2))
	all := []table.Candidate{candidate(1, "pay", 1, 2), candidate(2, "pay", 2, 2), candidate(3, "mail", 3, 0)}
	got := pop(t, tables, 10, all...)
	equal(t, "taken", numbers(got), "1 2 20 21")
	equal(t, "full", got.Full, []string{"pay"})
	equal(t, "booked", []bool{got.Batches[0].Booked, got.Batches[1].Booked}, []bool{true, false})
	got = pop(t, tables, 10, all...)
	equal(t, "taken while full", numbers(got), "")
	equal(t, "full", got.Full, []string{"pay"})
	settled := mustSettle(t, tables, table.Settlement{Domain: domain, Type: "pay", Limit: 2, Release: []byte(trigger(1).Booking())})
	equal(t, "freed", settled.Freed, true)
	equal(t, "taken then", numbers(pop(t, tables, 10, all...)), "3")
	// The limit was raised: both priorities have room.
	all[0].Limit, all[1].Limit = 4, 4
	equal(t, "taken with a higher limit", numbers(pop(t, tables, 10, all...)), "10 11")
}

func doubles(t *testing.T, s Store) {
	tables := s.Shard(0)
	open(t, tables)
	put(t, tables, chunk(3, "pay", 1, 1, 2))
	pay := candidate(3, "pay", 1, 5)
	equal(t, "taken", numbers(pop(t, tables, 2, pay)), "1 2")
	// The same again, one of them after another: no booking is made or changed.
	put(t, tables, chunk(3, "pay", 1, 1, 1), chunk(3, "pay", 2, 2, 2))
	got := pop(t, tables, 5, pay)
	equal(t, "taken again", numbers(got), "3")
	equal(t, "gone", got.Heads[0].Gone, 3)
	equal(t, "slots", slots(t, tables, "pay"), 3)
	// Twice in one chunk.
	c := chunk(3, "pay", 3, 7, 1)
	c.Triggers = append(c.Triggers, c.Triggers...)
	put(t, tables, c)
	equal(t, "taken of a chunk with a double", numbers(pop(t, tables, 5, pay)), "7")
	// Unlimited types do not care: history refuses the second grab.
	put(t, tables, chunk(3, "free", 1, 1, 1), chunk(3, "free", 2, 1, 2))
	equal(t, "unlimited", numbers(pop(t, tables, 5, candidate(3, "free", 1, 0))), "1 1 2")
}

func expiry(t *testing.T, s Store) {
	tables := s.Shard(0)
	open(t, tables)
	put(t, tables, chunk(3, "pay", 1, 1, 3))
	pay := candidate(3, "pay", 1, 1)
	equal(t, "taken", numbers(pop(t, tables, 3, pay)), "1")
	wants := []table.Want{{Tasklist: list, N: 3, Candidates: []table.Candidate{pay}, Now: now + 15_000, Until: now + 30_000}}
	taken, err := tables.Pop(t.Context(), wants)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "taken once the booking has expired", numbers(taken[0]), "2")
	counts, err := tables.Slots(t.Context(), domain, []string{"pay", "none"}, time.UnixMilli(now+30_000))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "unexpired slots", counts, []int{0, 0})
}

func settle(t *testing.T, s Store) {
	tables := s.Shard(0)
	open(t, tables)
	put(t, tables, chunk(3, "pay", 1, 1, 3))
	pop(t, tables, 3, candidate(3, "pay", 1, 10))
	got := mustSettle(t, tables, table.Settlement{Domain: domain, Type: "pay", Limit: 10, Extend: []table.Extension{
		{Member: trigger(9).Booking(), Until: now + 60_000},
		{Member: trigger(1).Booking(), Until: now + 60_000},
		{Member: trigger(2).Booking(), Until: now + 1}, // never shortened
	}, Release: []byte(trigger(3).Booking())})
	equal(t, "missing", got.Missing, []int{0})
	equal(t, "freed of a limit that was not full", got.Freed, false)
	for _, at := range []struct {
		after int64
		want  int
	}{{0, 2}, {14_999, 2}, {15_000, 1}, {60_000, 0}} {
		counts, err := tables.Slots(t.Context(), domain, []string{"pay"}, time.UnixMilli(now+at.after))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("slots after %d ms", at.after), counts, []int{at.want})
	}
	got = mustSettle(t, tables, table.Settlement{Domain: domain, Type: "none", Limit: 1, Release: []byte(trigger(3).Booking())})
	equal(t, "freed of nothing", got.Freed, false)
}

func lostMemory(t *testing.T, s Store) {
	tables := s.Shard(0)
	want := []table.Want{{Tasklist: list, N: 1, Candidates: []table.Candidate{candidate(3, "a", 1, 0)}, Now: now, Until: now + 1000}}
	lost := func(when string) {
		t.Helper()
		var e *table.LostError
		if err := tables.Put(t.Context(), []table.Chunk{chunk(3, "a", 1, 1, 1)}); !errors.Is(err, table.ErrEpochLost) || !errors.As(err, &e) {
			t.Fatalf("%s: put: %v", when, err)
		}
		equal(t, when+": domains", e.Domains, []string{domain})
		if taken, err := tables.Pop(t.Context(), want); !errors.Is(err, table.ErrEpochLost) || numbers(taken[0]) != "" {
			t.Fatalf("%s: pop: %v %v", when, taken, err)
		}
	}
	lost("never opened")
	open(t, tables)
	put(t, tables, chunk(3, "a", 1, 1, 1))
	s.Forget()
	lost("forgotten")
	opened, err := tables.Open(t.Context(), domain)
	if err != nil || opened.Whole || len(opened.Columns) > 0 {
		t.Fatalf("open: %+v %v", opened, err)
	}
	if taken, err := tables.Pop(t.Context(), want); err != nil || numbers(taken[0]) != "" {
		t.Fatalf("pop after open: %v %v", taken, err)
	}
}

func wholeOnly(t *testing.T, s Store) {
	tables, other := s.Shard(0), s.Shard(1)
	opened, err := tables.Open(t.Context(), domain)
	if err != nil {
		t.Fatal(err)
	}
	again, err := tables.Open(t.Context(), domain)
	if err != nil || again.Epoch != opened.Epoch || again.Whole {
		t.Fatalf("a second open: %+v %v, want epoch %s", again, err, opened.Epoch)
	}
	put(t, tables, chunk(3, "pay", 1, 1, 1), chunk(3, "free", 1, 2, 1))
	equal(t, "unlimited", numbers(pop(t, tables, 1, candidate(3, "free", 1, 0))), "2")
	limited := []table.Want{{Tasklist: list, N: 1, Candidates: []table.Candidate{candidate(3, "pay", 1, 2)}, Now: now, Until: now + 1000}}
	if _, err := tables.Pop(t.Context(), limited); !errors.Is(err, table.ErrEpochLost) {
		t.Fatalf("a limited pop of open tables: %v", err)
	}
	bookings := []table.Booking{
		{Type: "pay", Member: trigger(8).Booking(), Until: now + 60_000},
		{Type: "pay", Member: trigger(9).Booking(), Until: now + 60_000},
	}
	if err := tables.Restore(t.Context(), domain, "another", bookings); !errors.Is(err, table.ErrEpochLost) {
		t.Fatalf("restored under another epoch: %v", err)
	}
	if err := other.Restore(t.Context(), domain, opened.Epoch, bookings); !errors.Is(err, table.ErrEpochLost) {
		t.Fatalf("restored another shard: %v", err)
	}
	equal(t, "slots", slots(t, tables, "pay"), 0)
	if err := tables.Restore(t.Context(), domain, opened.Epoch, bookings); err != nil {
		t.Fatal(err)
	}
	taken, err := tables.Pop(t.Context(), limited)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "taken beside the restored", numbers(taken[0]), "")
	equal(t, "full", taken[0].Full, []string{"pay"})
}

func newOwner(t *testing.T, s Store) {
	tables := s.Shard(0)
	open(t, tables)
	at := time.Now().UnixMicro()
	put(t, tables, chunk(3, "a", at+5, 1, 3), chunk(3, "a", at, 10, 4), chunk(1, "b", at+7, 20, 2))
	pop(t, tables, 4, candidate(3, "a", at, 0))
	opened, err := s.Shard(0).Open(t.Context(), domain)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "whole", opened.Whole, true)
	slices.SortFunc(opened.Columns, func(a, b table.Known) int { return a.Priority - b.Priority })
	equal(t, "columns", opened.Columns, []table.Known{
		{Tasklist: list, Column: table.Column{Priority: 1, Type: "b"}, ReadyAt: at + 7, Triggers: 2},
		{Tasklist: list, Column: table.Column{Priority: 3, Type: "a"}, ReadyAt: at + 5, Triggers: 3},
	})
	if opened, err = s.Shard(1).Open(t.Context(), domain); err != nil || len(opened.Columns) > 0 || opened.Whole {
		t.Fatalf("another shard: %+v %v", opened, err)
	}
}

func restoreNeverShortens(t *testing.T, s Store) {
	tables := s.Shard(0)
	opened, err := tables.Open(t.Context(), domain)
	if err != nil {
		t.Fatal(err)
	}
	for _, until := range []int64{now + 60_000, now + 1} {
		if err := tables.Restore(t.Context(), domain, opened.Epoch, []table.Booking{{Type: "pay", Member: trigger(1).Booking(), Until: until}}); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := tables.Slots(t.Context(), domain, []string{"pay"}, time.UnixMilli(now+59_999))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "slots", counts, []int{1})
	// More bookings than one call takes.
	many := make([]table.Booking, 2500)
	for i := range many {
		many[i] = table.Booking{Type: []string{"x", "y"}[i%2], Member: trigger(i).Booking(), Until: now + 60_000}
	}
	if err := tables.Restore(t.Context(), domain, opened.Epoch, many); err != nil {
		t.Fatal(err)
	}
	equal(t, "x", slots(t, tables, "x"), 1250)
	var released []byte
	extend := make([]table.Extension, 0, len(many))
	for i, b := range many {
		if i%2 == 0 {
			released = append(released, b.Member...)
		}
		extend = append(extend, table.Extension{Member: b.Member, Until: now + 70_000})
	}
	got := mustSettle(t, tables, table.Settlement{Domain: domain, Type: "x", Limit: 1250, Extend: extend, Release: released})
	equal(t, "missing", len(got.Missing), 1250)
	equal(t, "freed", got.Freed, true)
	equal(t, "x after", slots(t, tables, "x"), 0)
}

func manyDomains(t *testing.T, s Store) {
	tables := s.Shard(0)
	open(t, tables)
	a, b := chunk(3, "a", 1, 1, 1), chunk(3, "a", 1, 2, 1)
	b.Domain = "unopened"
	var lost *table.LostError
	if err := tables.Put(t.Context(), []table.Chunk{a, b}); !errors.As(err, &lost) {
		t.Fatalf("put: %v", err)
	}
	equal(t, "lost", lost.Domains, []string{"unopened"})
	want := table.Want{Tasklist: list, N: 5, Candidates: []table.Candidate{candidate(3, "a", 1, 0)}, Now: now, Until: now + 1}
	unopened := want
	unopened.Tasklist = b.Tasklist
	taken, err := tables.Pop(t.Context(), []table.Want{unopened, want})
	if !errors.As(err, &lost) || len(taken) != 2 {
		t.Fatalf("pop: %v %v", taken, err)
	}
	equal(t, "lost", lost.Domains, []string{"unopened"})
	equal(t, "taken beside the lost", numbers(taken[1]), "1")
}

func bookingsListed(t *testing.T, s Store) {
	tables := s.Shard(0)
	open(t, tables)
	put(t, tables, chunk(3, "pay", 1, 1, 2), chunk(3, "mail", 1, 5, 1))
	pop(t, tables, 3, candidate(3, "pay", 1, 10), candidate(3, "mail", 1, 10))
	mustSettle(t, tables, table.Settlement{Domain: domain, Type: "pay", Extend: []table.Extension{{Member: trigger(2).Booking(), Until: now + 60_000}}})
	list := func(beyond int64, types ...string) []table.Booking {
		t.Helper()
		got, err := tables.Bookings(t.Context(), domain, types, time.UnixMilli(beyond))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b table.Booking) int { return strings.Compare(a.Member, b.Member) })
		return got
	}
	first := table.Booking{Type: "pay", Member: trigger(1).Booking(), Until: now + 15_000}
	second := table.Booking{Type: "pay", Member: trigger(2).Booking(), Until: now + 60_000}
	other := table.Booking{Type: "mail", Member: trigger(5).Booking(), Until: now + 15_000}
	equal(t, "all", list(now, "pay", "mail", "none"), []table.Booking{first, second, other})
	equal(t, "of one type", list(now+14_999, "pay"), []table.Booking{first, second})
	equal(t, "beyond", list(now+15_000, "pay", "mail"), []table.Booking{second})
	equal(t, "none", len(list(now+60_000, "pay")), 0)
	equal(t, "of nothing", len(list(now)), 0)
}

func mustSettle(t *testing.T, tables shard.Tables, s table.Settlement) table.Settled {
	t.Helper()
	got, err := tables.Settle(t.Context(), []table.Settlement{s})
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

func slots(t *testing.T, tables shard.Tables, typ string) int {
	t.Helper()
	counts, err := tables.Slots(t.Context(), domain, []string{typ}, time.UnixMilli(now))
	if err != nil {
		t.Fatal(err)
	}
	return counts[0]
}
