// Package tables is the port of matching to its triggering tables and slots.
//
// Owns: what a shard asks of them. Never does: anything; internal/memtable and
// internal/redistable do it, and internal/tabletest holds both to one behaviour.
// On failure: an error leaves it open whether a call was carried out. It may be made
// again with a later Seq: entries are absolute, chunks are distinguished by their bytes,
// and triggers that a lost Outcome took are sent again by history.
package tables

import (
	"context"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Tables is the tables and slots of any number of domains, as one shard sees them.
// Implementations are safe for concurrent use and do not keep what they are given.
type Tables interface {
	// Group tells which calls fail together: domains on the same node of Redis. Calls of
	// one group are made in one round trip, those of different groups beside each other.
	Group(domain string) string
	// Open tells what the shard's table of a domain holds, and begins a life of it
	// where there is none.
	Open(ctx context.Context, domain string) (table.Opened, error)
	// Do carries out calls of one group in one round trip, at most one of a domain. The
	// outcomes and errors are by index of calls: one that fails does not harm the others.
	Do(ctx context.Context, calls []table.Call) ([]table.Outcome, []error)
	// Slots counts the slots in use of each limit, for people.
	Slots(ctx context.Context, domain string, limits []table.Ref) ([]int, error)
	// Drop forgets a limit that is no more.
	Drop(ctx context.Context, domain string, limit table.Ref) error
}
