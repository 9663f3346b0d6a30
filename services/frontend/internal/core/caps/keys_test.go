package caps

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAKeyIsFull as long as the last report of its partition says so, for its domain alone.
func TestAKeyIsFull(t *testing.T) {
	var k Keys
	a := Key{"shop", "a"}
	testkit.Equal(t, "at first", k.Full(a), 0)
	k.Report(1, map[Key]int64{a: 1000})
	k.Report(2, map[Key]int64{{"shop", "b"}: 7})
	testkit.Equal(t, "as reported", k.Full(a), 1000)
	testkit.Equal(t, "another domain's", k.Full(Key{"bank", "a"}), 0)
	k.Report(2, nil)
	testkit.Equal(t, "after the report of another partition", k.Full(a), 1000)
	k.Report(1, nil)
	testkit.Equal(t, "with room", k.Full(a), 0)
}
