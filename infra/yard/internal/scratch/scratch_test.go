package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/filelock"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestAFolderOfAKilledProcessIsRemovedByTheNextOne(t *testing.T) {
	if !filelock.Works {
		t.Skip("this system has no locks")
	}
	t.Setenv("TMPDIR", t.TempDir())
	alive, err := New()
	testkit.NoError(t, err)
	killed, err := New()
	testkit.NoError(t, err)
	testkit.NoError(t, os.WriteFile(filepath.Join(killed.Path, "data"), nil, 0o600))
	_ = killed.lock.Close() // as the kernel does
	next, err := New()
	testkit.NoError(t, err)
	if _, err := os.Stat(killed.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the killed process: %v", err)
	}
	testkit.Check(t, testkit.Err(os.Stat(alive.Path)))
	for _, d := range []*Dir{alive, next} {
		testkit.Check(t, d.Remove())
		if _, err := os.Stat(d.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a removed folder: %v", err)
		}
	}
}
