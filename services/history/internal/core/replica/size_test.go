package replica

import (
	"testing"
	"unsafe"
)

// TestEntriesAreSmall: past 512 bytes the garbage collector scans each entry by itself; it
// took a tenth of the CPU under load.
func TestEntriesAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(Entry{}); n > 512 {
		t.Errorf("an entry has %d bytes", n)
	}
}
