package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// repository is what the paths of all modules begin with.
const repository = "github.com/yardmaster-io/yardmaster/"

// natsServer is the server for clusters of NATS; a single one is in the command.
const natsServer = "github.com/nats-io/nats-server/v2"

// Binaries is a folder with the command, the four services and nats-server.
type Binaries struct {
	dir   string
	ports *ports
}

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
	args = append(args, repository+"infra/yard", natsServer)
	for _, s := range Services() {
		args = append(args, repository+"services/"+string(s)+"/cmd/"+string(s))
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir) // the build's error tells more
		return Binaries{}, fmt.Errorf("build the binaries: %w\n%s", err, out)
	}
	return Binaries{dir, &ports{taken: map[int]bool{}}}, nil
}

// Remove deletes the folder.
func (b Binaries) Remove() error { return os.RemoveAll(b.dir) }

func (b Binaries) path(name string) string { return filepath.Join(b.dir, name) }
