// Package memtable is the triggering tables in this process's memory: the pure
// core behind a lock. It is the embedded default of a single process.
//
// Owns: one table for all shards of the process, since a domain's limits hold
// across shards. Never does: serve two processes; their limits would add up.
// On failure: there is none, but it starts empty, which its callers see as memory
// that was lost: history sends the triggers again, and each shard knows its slots.
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
	// passed is how much more time has passed here than elsewhere.
	passed time.Duration
}

// New returns an empty store.
func New() *Store { return &Store{table: table.New()} }

// Forget loses everything, for tests of what follows.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.Forget()
}

// Pass lets time pass at once, for tests.
func (s *Store) Pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed += d
}

func (s *Store) now() time.Time { return time.Now().Add(s.passed) }

// Tables is one shard's view of a Store. It is safe for concurrent use.
type Tables struct {
	store *Store
	shard int
}

// Shard returns the tables of one shard.
func (s *Store) Shard(shard int) *Tables { return &Tables{s, shard} }

// Group implements tables.Tables.
func (t *Tables) Group(string) string { return "" }

// Open implements tables.Tables.
func (t *Tables) Open(_ context.Context, domain string) (table.Opened, error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.epochs++
	return t.store.table.Open(domain, t.shard, strconv.Itoa(t.store.epochs)), nil
}

// Do implements tables.Tables.
func (t *Tables) Do(_ context.Context, calls []table.Call) ([]table.Outcome, []error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	outcomes := make([]table.Outcome, len(calls))
	for i, c := range calls {
		outcomes[i] = t.store.table.Do(c, t.store.now().UnixMicro())
	}
	return outcomes, make([]error, len(calls))
}

// Slots implements tables.Tables.
func (t *Tables) Slots(_ context.Context, domain string, limits []table.Ref) ([]int, error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	return t.store.table.Slots(domain, limits, t.store.now().UnixMilli()), nil
}

// Drop implements tables.Tables.
func (t *Tables) Drop(_ context.Context, domain string, limit table.Ref) error {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.table.Drop(domain, limit)
	return nil
}
