package memhistory

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/porttest"
)

func TestArchive(t *testing.T) {
	porttest.ExerciseArchive(t, func(*testing.T) porttest.ArchivePorts {
		w := NewWorld(func(string, []byte) {}, func(string, []byte) bool { return true })
		return porttest.ArchivePorts{
			Archive: func() partition.Archive { return Archive{w, porttest.Retention} },
			Reader:  Reader{w}, Submit: w.AppendSubmit, SubmitOf: w.AppendSubmitOf,
			Dead: func(*testing.T) []*logv1.Record { return w.DeadTasks() },
		}
	})
}
