package natshistory

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestMain runs more tests side by side than there are cores: most of the time they
// wait for servers and for the disk.
func TestMain(m *testing.M) {
	testkit.SideBySide(6)
	m.Run()
}

// version1 is what a cluster writes.
func version1() uint32 { return 1 }
