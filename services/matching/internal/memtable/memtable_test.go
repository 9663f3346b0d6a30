package memtable_test

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/memtable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tabletest"
)

type store struct{ *memtable.Store }

func (s store) Shard(i int) tables.Tables { return s.Store.Shard(i) }

func TestTables(t *testing.T) {
	tabletest.Exercise(t, func(*testing.T) tabletest.Store { return store{memtable.New()} })
}
