package memhistory

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/porttest"
)

func TestSnapshots(t *testing.T) {
	porttest.ExerciseSnapshots(t, func(*testing.T) partition.Snapshots {
		return Snapshots{NewWorld(func(string, []byte) {}, func(string, []byte) bool { return true })}
	})
}

func TestPorts(t *testing.T) {
	porttest.Exercise(t, func(*testing.T) porttest.Ports {
		w := NewWorld(func(string, []byte) {}, func(string, []byte) bool { return true })
		return porttest.Ports{Log: w, TimerStore: w, Checkpoints: w, Submit: w.AppendSubmit, SubmitOf: w.AppendSubmitOf}
	})
}
