package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestALockBelongsToOneHandleUntilItIsClosed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Try(first); err != nil {
		t.Fatal(err)
	}
	if err := Try(second); Works && !errors.Is(err, ErrLocked) {
		t.Errorf("the second handle got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Try(second); err != nil {
		t.Errorf("after the first was closed: %v", err)
	}
}

// TestALockThatIsGivenUpMeanwhileIsTaken: as when a child that is being started holds it for a moment.
func TestALockThatIsGivenUpMeanwhileIsTaken(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(3*childLook, func() { _ = first.Close() })
	second, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
