// Package tabletest is what every implementation of tables.Tables must do: one suite
// for the memory and the Redis adapter, which keeps the first an honest stand-in for
// the second. Rules of slots and lines that only random calls show (leases, turns, what is
// read ahead) are those of core/table, whose model checks them: LikeTheCore compares.
// It is imported by tests only.
package tabletest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
)

// Store is one memory with the tables of several shards in it.
type Store interface {
	// Shard returns a new client of one shard.
	Shard(i int) tables.Tables
	// Forget loses everything.
	Forget()
	// Pass lets time pass at once.
	Pass(d time.Duration)
}

// Exercise runs the suite. Each call of factory gives an empty store.
func Exercise(t *testing.T, factory func(t *testing.T) Store) {
	for _, c := range []struct {
		name   string
		shards int
		run    func(r *rig)
	}{
		{"Order", 1, order},
		{"PartlyUsedChunkKeepsItsPlace", 1, partlyUsed},
		{"TestI5_LostMemoryIsNoticed", 1, lostMemory},
		{"NewOwnerFindsColumns", 2, newOwner},
		{"R9_DrainedTasklistsAreForgotten", 1, drained},
		{"ManyChunksInOneCall", 1, manyChunks},
		{"ManyDomainsInOneCall", 1, manyDomains},
		{"TestI8_OlderCallsAreRefused", 1, overtaken},
		{"TestI8_R32_BookedOnlyWithAllEntries", 3, wholeOnly},
		{"EntriesExpire", 2, expiry},
		{"TheLineGoesByPriority", 3, priorities},
		{"DroppedLimitsAreForgotten", 2, dropped},
		{"TestI8_TwoClientsNeverOverbook", 2, neverOverbook},
		{"ARateLetsABurstStartAndThenOneEachInterval", 2, rates},
		{"RatesAndSlotsAreAllOrNone", 1, ratesAndSlots},
		{"WhatDoesNotStartGivesItsStartsBack", 2, unusedStarts},
		{"WhatCostsSeveralStartsWaitsInItsTurn", 2, costs},
		{"ARateThatChangesLetsABurstStartAtMost", 1, changedRates},
		{"OneInShadowCountsAndHoldsNothingUp", 2, shadow},
		{"TestI8_EachGroupHasSlotsOfItsOwn", 2, perGroup},
		{"TestI8_GroupsAreBookedOnlyWithAllShards", 3, perGroupWhole},
		{"TestI8_ANewCountVoidsTheOneBefore", 2, perGroupCounts},
		{"TheLineOfAGroup", 2, perGroupLine},
		{"GroupsTakeTurnsByRank", 1, turnsByRank},
		{"LikeTheCore", 3, likeTheCore},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(newRig(t, factory(t), c.shards)) })
	}
}

// ExerciseRandomly makes random calls only, for a store that loses its memory in a way of its own.
func ExerciseRandomly(t *testing.T, s Store) { likeTheCore(newRig(t, s, 3)) }

const domain = "shop"

var list = table.Tasklist{Domain: domain, Name: "mail"}

// rig is a store and the shards that use it, each with the domain open.
type rig struct {
	*testing.T
	store  Store
	shards []tables.Tables
	epochs []string
	calls  uint64
}

func newRig(t *testing.T, s Store, shards int) *rig {
	r := &rig{T: t, store: s, epochs: make([]string, shards)}
	for i := range shards {
		r.shards = append(r.shards, s.Shard(i))
		r.open(i)
	}
	return r
}

func (r *rig) open(shard int) table.Opened {
	r.Helper()
	opened, err := r.shards[shard].Open(r.Context(), domain)
	if err != nil {
		r.Fatal(err)
	}
	r.epochs[shard] = opened.Epoch
	return opened
}

// forget loses everything, after which each shard opens its tables.
func (r *rig) forget() {
	r.Helper()
	r.store.Forget()
	for i := range r.shards {
		r.open(i)
	}
}

func (r *rig) drop(ref table.Ref) {
	r.Helper()
	if err := r.shards[0].Drop(r.Context(), domain, ref); err != nil {
		r.Fatal(err)
	}
}

// call is a call of a shard, ready to be sent.
func (r *rig) call(shard int, c table.Call) table.Call {
	r.calls++
	c.Domain, c.Shard, c.Shards, c.Epoch, c.Seq = domain, shard, len(r.shards), r.epochs[shard], table.Seq{Epoch: 1, Call: r.calls}
	return c
}

func (r *rig) send(c table.Call) table.Outcome {
	r.Helper()
	outcomes, errs := r.shards[c.Shard].Do(r.Context(), []table.Call{c})
	if errs[0] != nil {
		r.Fatal(errs[0])
	}
	return outcomes[0]
}

// do makes a call that is carried out.
func (r *rig) do(shard int, c table.Call) table.Outcome {
	r.Helper()
	out := r.send(r.call(shard, c))
	if out.Lost || out.Overtaken {
		r.Fatalf("refused: %+v", out)
	}
	return out
}

func (r *rig) put(shard int, chunks ...table.Chunk) {
	r.Helper()
	r.do(shard, table.Call{Put: chunks})
}

func (r *rig) pop(n int, candidates ...table.Candidate) table.Taken {
	r.Helper()
	return r.do(0, table.Call{Wants: []table.Want{{Tasklist: list, N: n, Candidates: candidates}}}).Taken[0]
}

func (r *rig) equal(what string, got, want any) {
	r.Helper()
	if !reflect.DeepEqual(got, want) {
		r.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

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

func candidate(priority int, typ string, head int64, path ...int) table.Candidate {
	return table.Candidate{Column: table.Column{Priority: priority, Type: typ}, Head: head, Path: path}
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

// blockedBy prints which limits left triggers, and why, such as "type/pay full".
func blockedBy(taken table.Taken) string {
	var all []string
	for _, b := range taken.Blocked {
		all = append(all, fmt.Sprint(b.By, " ", []string{"", "full", "in line", "restoring"}[b.Why]))
	}
	return strings.Join(all, " ")
}

// count is how many triggers were taken.
func count(taken table.Taken) int {
	n := 0
	for _, b := range taken.Batches {
		n += len(b.Triggers) / ids.TriggerBytes
	}
	return n
}

func order(r *rig) {
	r.put(
		0, chunk(3, "late", 50, 1, 1), chunk(3, "old", 10, 2, 1), chunk(5, "low", 1, 3, 1),
		chunk(1, "urgent", 90, 4, 1), chunk(3, "old", 60, 5, 1), chunk(3, "late", 55, 6, 1),
	)
	got := r.pop(10, candidate(1, "urgent", 90), candidate(3, "old", 10), candidate(3, "late", 50), candidate(5, "low", 1))
	r.equal("taken", numbers(got), "4 2 1 6 5 3")
	for _, h := range got.Heads {
		r.equal("empty "+h.Type, h.Empty, true)
	}
	r.equal("heads", len(got.Heads), 4)
	r.equal("taken from nothing", numbers(r.pop(10, candidate(1, "urgent", 90))), "")
	// A call may take what it stores.
	out := r.do(0, table.Call{
		Put:   []table.Chunk{chunk(3, "old", 7, 8, 2)},
		Wants: []table.Want{{Tasklist: list, N: 1, Candidates: []table.Candidate{candidate(3, "old", 7)}}},
	})
	r.equal("taken at once", numbers(out.Taken[0]), "8")
}

func partlyUsed(r *rig) {
	// Real times: their scores need all digits.
	at := time.Now().UnixMicro()
	r.put(0, chunk(3, "a", at, 1, 5), chunk(3, "a", at+1, 10, 5))
	r.put(0, chunk(3, "a", at+1, 10, 5)) // repeated: nothing changes
	got := r.pop(2, candidate(3, "a", at))
	r.equal("taken", numbers(got), "1 2")
	r.equal("heads", got.Heads, []table.Head{{Column: table.Column{Priority: 3, Type: "a"}, ReadyAt: at, Gone: 2}})
	got = r.pop(5, candidate(3, "a", at))
	r.equal("then", numbers(got), "3 4 5 10 11")
	r.equal("heads", got.Heads, []table.Head{{Column: table.Column{Priority: 3, Type: "a"}, ReadyAt: at + 1, Gone: 5}})
}

// elsewhere is a call about a domain that no shard has opened.
func elsewhere(c table.Call) table.Call {
	c.Domain, c.Put, c.Wants = "unopened", slices.Clone(c.Put), slices.Clone(c.Wants)
	for i := range c.Put {
		c.Put[i].Domain = c.Domain
	}
	for i := range c.Wants {
		c.Wants[i].Domain = c.Domain
	}
	return c
}

func lostMemory(r *rig) {
	full := table.Call{
		Stances: []table.Stance{{Ref: "type/a", Max: 1}}, Put: []table.Chunk{chunk(3, "a", 1, 1, 1)},
		Wants: []table.Want{{Tasklist: list, N: 1, Candidates: []table.Candidate{candidate(3, "a", 1)}}},
	}
	lost := func(when string, c table.Call) {
		r.Helper()
		r.equal(when, r.send(c), table.Outcome{Lost: true})
	}
	c := r.call(0, full)
	c.Epoch = "another"
	lost("another epoch", c)
	lost("never opened", elsewhere(r.call(0, full)))
	r.put(0, chunk(3, "a", 1, 1, 1))
	old := r.epochs[0]
	r.store.Forget()
	lost("forgotten", r.call(0, full))
	opened := r.open(0)
	r.equal("columns", len(opened.Columns), 0)
	r.equal("fresh", opened.Fresh, true)
	if opened.Epoch == old {
		r.Fatal("another life has the same epoch")
	}
	r.equal("taken after open", numbers(r.pop(1, candidate(3, "a", 1))), "")
	r.equal("slots", r.slots("type/a"), 0)
}

func newOwner(r *rig) {
	at := time.Now().UnixMicro()
	a, b := chunk(3, "a", at+5, 1, 3), chunk(1, "b", at+7, 20, 2)
	other := chunk(2, "a", at+9, 30, 1)
	other.Partition = 1
	r.put(0, a, chunk(3, "a", at, 10, 4), b, other)
	r.pop(4, candidate(3, "a", at))
	r.put(0, chunk(3, "a", at+50, 40, 1)) // it is not the oldest
	epoch := r.epochs[0]
	opened := r.open(0)
	r.equal("epoch", opened.Epoch, epoch)
	r.equal("fresh", opened.Fresh, false)
	r.equal("columns", opened.Columns, []table.Known{
		{Tasklist: list, Column: b.Column, ReadyAt: at + 7, Triggers: 2},
		{Tasklist: list, Column: a.Column, ReadyAt: at + 5, Triggers: 4},
		{Tasklist: other.Tasklist, Column: other.Column, ReadyAt: at + 9, Triggers: 1},
	})
	if opened := r.open(1); len(opened.Columns) > 0 {
		r.Fatalf("another shard: %+v", opened)
	}
}

// drained empties tasklists in several ways: nothing is found in them by a new owner.
func drained(r *rig) {
	for i := range 20 {
		c := chunk(1+i%3, "a", 1, 1, 2)
		d := chunk(5, "b", 2, 5, 1)
		c.Name = fmt.Sprint("once-", i)
		d.Tasklist = c.Tasklist
		r.put(0, c, d)
		for len(r.open(0).Columns) > 0 {
			w := table.Want{Tasklist: c.Tasklist, N: 1 + i%2, Candidates: []table.Candidate{{Column: c.Column}, {Column: d.Column}}}
			if got := r.do(0, table.Call{Wants: []table.Want{w}}).Taken[0]; count(got) == 0 {
				r.Fatalf("columns that hold nothing: %+v", r.open(0).Columns)
			}
		}
	}
}

func manyChunks(r *rig) {
	var chunks []table.Chunk
	for i := range 3000 {
		chunks = append(chunks, chunk(3, []string{"a", "b"}[i%2], int64(i), i, 1))
	}
	r.put(0, chunks...)
	total := 0
	for _, k := range r.open(0).Columns {
		total += k.Triggers
	}
	r.equal("triggers", total, 3000)
	r.equal("taken", count(r.pop(2900, candidate(3, "a", 0), candidate(3, "b", 0))), 2900)
}

// manyDomains: what one call of several does not get leaves the others alone.
func manyDomains(r *rig) {
	wants := []table.Want{{Tasklist: list, N: 5, Candidates: []table.Candidate{candidate(3, "a", 1)}}}
	here := r.call(0, table.Call{Put: []table.Chunk{chunk(3, "a", 1, 1, 1)}, Wants: wants})
	away := elsewhere(here)
	outcomes, errs := r.shards[0].Do(r.Context(), []table.Call{away, here})
	r.equal("errors", errs, []error{nil, nil})
	r.equal("the unopened", outcomes[0], table.Outcome{Lost: true})
	r.equal("taken beside the lost", numbers(outcomes[1].Taken[0]), "1")
	outcomes, errs = r.shards[0].Do(r.Context(), nil)
	r.equal("of nothing", len(outcomes)+len(errs), 0)
}
