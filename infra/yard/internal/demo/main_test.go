package demo

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestMain runs more demos side by side than there are cores: most of the time they wait.
func TestMain(m *testing.M) {
	testkit.SideBySide(4)
	m.Run()
}
