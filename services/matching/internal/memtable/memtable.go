// Package memtable is the triggering tables in this process's memory: the pure
// core behind a lock. It is the embedded default of a single process.
//
// Owns: one table for all shards of the process, since a domain's limits hold
// across shards. Never does: serve two processes; their limits would add up.
// On failure: there is none, but it starts empty, which its callers see as memory
// that was lost: history sends the triggers and bookings again.
package memtable

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Store is the memory that the shards of one process share.
type Store struct {
	mu     sync.Mutex
	table  *table.Table
	epochs int
}

// New returns an empty store.
func New() *Store { return &Store{table: table.New()} }

// Forget loses everything, for tests of what follows.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.Forget()
}

// Tables is one shard's view of a Store. It is safe for concurrent use.
type Tables struct {
	store *Store
	shard int
}

// Shard returns the tables of one shard.
func (s *Store) Shard(shard int) *Tables { return &Tables{s, shard} }

// Open implements shard.Tables.
func (t *Tables) Open(_ context.Context, domain string) (table.Opened, error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.epochs++
	return t.store.table.Open(domain, t.shard, strconv.Itoa(t.store.epochs)), nil
}

// Restore implements shard.Tables.
func (t *Tables) Restore(_ context.Context, domain, epoch string, bookings []table.Booking) error {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	if !t.store.table.Restore(domain, t.shard, epoch, bookings, true) {
		return &table.LostError{Domains: []string{domain}}
	}
	return nil
}

// Put implements shard.Tables.
func (t *Tables) Put(_ context.Context, chunks []table.Chunk) error {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	if lost := t.store.table.Put(t.shard, chunks); len(lost) > 0 {
		return &table.LostError{Domains: lost}
	}
	return nil
}

// Pop implements shard.Tables.
func (t *Tables) Pop(_ context.Context, wants []table.Want) ([]table.Taken, error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	taken := make([]table.Taken, len(wants))
	var lost []string
	for i, w := range wants {
		var ok bool
		if taken[i], ok = t.store.table.Pop(t.shard, w); !ok {
			lost = append(lost, w.Domain)
		}
	}
	if len(lost) > 0 {
		return taken, &table.LostError{Domains: lost}
	}
	return taken, nil
}

// Settle implements shard.Tables.
func (t *Tables) Settle(_ context.Context, settlements []table.Settlement) ([]table.Settled, error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	settled := make([]table.Settled, len(settlements))
	for i, s := range settlements {
		settled[i] = t.store.table.Settle(s)
	}
	return settled, nil
}

// Bookings implements shard.Tables.
func (t *Tables) Bookings(_ context.Context, domain string, types []string, beyond time.Time) ([]table.Booking, error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	return t.store.table.Bookings(domain, types, beyond.UnixMilli()), nil
}

// Slots implements shard.Tables.
func (t *Tables) Slots(_ context.Context, domain string, types []string, now time.Time) ([]int, error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	return t.store.table.Slots(domain, types, now.UnixMilli()), nil
}
