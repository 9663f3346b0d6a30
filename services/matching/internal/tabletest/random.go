package tabletest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// use counts slots in use, now and ever at once.
type use struct{ held, most, taken atomic.Int64 }

func (u *use) take(n int64) {
	u.taken.Add(n)
	in := u.held.Add(n)
	for old := u.most.Load(); in > old && !u.most.CompareAndSwap(old, in); old = u.most.Load() {
	}
}

const overbookLimit = 7

// neverOverbook has clients of two shards take, hold and give back slots of one
// limit at the same time, and counts those in use.
func neverOverbook(t *testing.T, s Store) {
	var in use
	var workers sync.WaitGroup
	for w := range 4 {
		tables := s.Shard(w % 2)
		if w < 2 {
			open(t, tables)
		}
		workers.Go(func() {
			for i := range 150 {
				if err := bookAndRelease(tables, w, i, &in); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if in.most.Load() > overbookLimit || in.taken.Load() == 0 {
		t.Fatalf("%d slots in use at once, limit %d; %d taken in all", in.most.Load(), overbookLimit, in.taken.Load())
	}
	equal(t, "slots left", slots(t, s.Shard(0), "pay"), 0)
}

// bookAndRelease is round i of worker w, whose tasklist is its own.
func bookAndRelease(tables shard.Tables, w, i int, in *use) error {
	ctx := context.Background()
	c := chunk(3, "pay", int64(i), w*10_000+i*10, 10)
	c.Name = fmt.Sprint("list", w)
	if err := tables.Put(ctx, []table.Chunk{c}); err != nil {
		return err
	}
	taken, err := tables.Pop(ctx, []table.Want{{
		Tasklist: c.Tasklist, N: 1 + i%5, Candidates: []table.Candidate{candidate(3, "pay", 0, overbookLimit)},
		Now: now, Until: now + 60_000,
	}})
	if err != nil {
		return err
	}
	var members []byte
	for _, b := range booked(taken[0]) {
		members = append(members, b.Member...)
	}
	n := int64(len(members) / ids.BookingBytes)
	in.take(n)
	in.held.Add(-n) // before the release, so that the count is never too high
	_, err = tables.Settle(ctx, []table.Settlement{{Domain: domain, Type: "pay", Limit: overbookLimit, Release: members}})
	return err
}

// booked are the bookings made by a Pop.
func booked(taken table.Taken) []table.Booking {
	var all []table.Booking
	for _, b := range taken.Batches {
		for i := range len(b.Triggers) / ids.TriggerBytes {
			if b.Booked {
				all = append(all, table.Booking{Type: b.Type, Member: ids.TriggerAt(b.Triggers, i).Booking()})
			}
		}
	}
	return all
}

// twins are the pure core and the tables under test, given the same random calls.
type twins struct {
	t      *testing.T
	random *rand.Rand
	core   *table.Table
	tables shard.Tables
	index  table.Index
	booked []table.Booking
	next   int
}

var (
	twinTypes  = []string{"a", "b", "c", "d"}
	twinLimits = map[string]int{"b": 3, "c": 8}
)

// likeTheCore compares random calls with the pure core.
func likeTheCore(t *testing.T, s Store) {
	w := &twins{t: t, random: testkit.Seed(t), core: table.New(), tables: s.Shard(0)}
	open(t, w.tables)
	w.core.Open(domain, 0, "e")
	w.core.Restore(domain, 0, "e", nil, true)
	for step := range 400 {
		switch w.random.IntN(4) {
		case 0, 1:
			w.put()
		case 2:
			w.pop(step)
		case 3:
			w.release()
		}
	}
}

func (w *twins) put() {
	n := 1 + w.random.IntN(9)
	c := chunk(1+w.random.IntN(3), twinTypes[w.random.IntN(4)], int64(w.random.IntN(50)), w.next, n)
	w.next += n
	w.core.Put(0, []table.Chunk{c})
	put(w.t, w.tables, c)
	w.index.Put(c.Column, c.ReadyAt, n)
}

func (w *twins) pop(step int) {
	at := now + int64(step)*10
	want := table.Want{Tasklist: list, N: 1 + w.random.IntN(25), Now: at, Until: at + 500}
	skipped := twinTypes[w.random.IntN(4)]
	want.Candidates = w.index.Candidates(nil, 3+w.random.IntN(10), func(typ string) bool { return step%7 == 0 && typ == skipped })
	for i := range want.Candidates {
		want.Candidates[i].Limit = twinLimits[want.Candidates[i].Type]
	}
	core, _ := w.core.Pop(0, want)
	got, err := w.tables.Pop(w.t.Context(), []table.Want{want})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(core.Full) // their order means nothing
	slices.Sort(got[0].Full)
	if fmt.Sprint(got[0]) != fmt.Sprint(core) {
		w.t.Fatalf("step %d: want %+v\ngot  %+v\ncore %+v", step, want, got[0], core)
	}
	for _, h := range got[0].Heads {
		w.index.Seen(h)
	}
	w.booked = append(w.booked, booked(got[0])...)
}

func (w *twins) release() {
	if len(w.booked) == 0 {
		return
	}
	i := w.random.IntN(len(w.booked))
	b := w.booked[i]
	w.booked = slices.Delete(w.booked, i, i+1)
	x := table.Settlement{Domain: domain, Type: b.Type, Limit: twinLimits[b.Type], Release: []byte(b.Member)}
	equal(w.t, "settled", fmt.Sprint(mustSettle(w.t, w.tables, x)), fmt.Sprint(w.core.Settle(x)))
}
