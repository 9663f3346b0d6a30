package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// repository is what the paths of all modules begin with.
const repository = "github.com/yardmaster-io/yardmaster/"

// Binaries is a folder with the command and the four services.
type Binaries struct{ dir string }

// Build builds what runs in a cluster into a temporary folder. It takes seconds
// with a warm build cache, a minute or two with a cold one. The caller removes it.
func Build() (Binaries, error) { return build() }

// build is Build with more flags of the go command.
func build(flags ...string) (Binaries, error) {
	dir, err := os.MkdirTemp("", "yard-cluster-")
	if err != nil {
		return Binaries{}, err
	}
	args := append([]string{"build", "-o", dir + string(filepath.Separator)}, flags...)
	args = append(args, repository+"infra/yard")
	for _, s := range Services() {
		args = append(args, repository+"services/"+string(s)+"/cmd/"+string(s))
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir) // the build's error tells more
		return Binaries{}, fmt.Errorf("build the binaries: %w\n%s", err, out)
	}
	return Binaries{dir}, nil
}

// Remove deletes the folder.
func (b Binaries) Remove() error { return os.RemoveAll(b.dir) }

func (b Binaries) path(name string) string { return filepath.Join(b.dir, name) }
