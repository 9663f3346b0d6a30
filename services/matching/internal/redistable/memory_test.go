package redistable_test

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/memtable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
)

// process is the memory of a process.
type process struct{ *memtable.Store }

func (p process) Shard(i int) tables.Tables { return p.Store.Shard(i) }

// TestMemory: the tables of a single process do what those in Redis do.
func TestMemory(t *testing.T) {
	exercise(t, func(*testing.T) memory { return process{memtable.New()} })
}
