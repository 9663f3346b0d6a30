package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestALockBelongsToOneHandleUntilItIsClosed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		testkit.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first, second := open(), open()
	testkit.NoError(t, Try(first))
	if err := Try(second); Works && !errors.Is(err, ErrLocked) {
		t.Errorf("the second handle got %v", err)
	}
	testkit.NoError(t, first.Close())
	testkit.Check(t, Try(second))
}

// TestALockThatIsGivenUpMeanwhileIsTaken: as when a child that is being started holds it for a moment.
func TestALockThatIsGivenUpMeanwhileIsTaken(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, err := Take(t.Context(), name, ChildStarts)
	testkit.NoError(t, err)
	time.AfterFunc(3*lookEvery, func() { _ = first.Close() })
	second, err := Take(t.Context(), name, ChildStarts)
	testkit.NoError(t, err)
	testkit.Check(t, second.Close())
}
