package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/filelock"
)

func TestAFolderOfAKilledProcessIsRemovedByTheNextOne(t *testing.T) {
	if !filelock.Works {
		t.Skip("this system has no locks")
	}
	t.Setenv("TMPDIR", t.TempDir())
	alive, err := New()
	if err != nil {
		t.Fatal(err)
	}
	killed, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed.Path, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = killed.lock.Close() // as the kernel does
	next, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the killed process: %v", err)
	}
	if _, err := os.Stat(alive.Path); err != nil {
		t.Errorf("the folder of a process that is alive: %v", err)
	}
	for _, d := range []*Dir{alive, next} {
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(d.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a removed folder: %v", err)
		}
	}
}
