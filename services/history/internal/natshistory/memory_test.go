package natshistory

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

func newMemory() *memhistory.World {
	return memhistory.NewWorld(func(string, []byte) {}, func(string, []byte) bool { return true })
}

func TestPortsInMemory(t *testing.T) {
	exercisePorts(t, func(*testing.T) suitePorts {
		w := newMemory()
		member := func(lane ids.Lane, _ string, tasks []byte) uint64 {
			return w.AppendSubmitOf(replica.Queue{Lane: lane, Place: "shop"}, tasks)
		}
		return suitePorts{Log: w, TimerStore: w, Checkpoints: w, Submit: w.AppendSubmit, SubmitOf: w.AppendSubmitOf, SubmitMember: member}
	})
}

func TestArchiveInMemory(t *testing.T) {
	exerciseArchive(t, func(*testing.T) archivePorts {
		w := newMemory()
		return archivePorts{
			Archive: func() partition.Archive { return memhistory.Archive{World: w, Retention: suiteRetention} },
			Reader:  memhistory.Reader{World: w}, Submit: w.AppendSubmit, SubmitOf: w.AppendSubmitOf,
			Dead: func(*testing.T) []*logv1.Record { return w.DeadTasks() },
		}
	})
}

func TestSnapshotsInMemory(t *testing.T) {
	exerciseSnapshots(t, func(*testing.T) partition.Snapshots { return memhistory.Snapshots{World: newMemory()} })
}
