package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Service is the name of one of the four, or NATS.
type Service string

// NATS are the nats-servers: processes of the cluster like those of the services.
const NATS Service = "nats"

// The services.
const (
	Frontend Service = "frontend"
	History  Service = "history"
	Matching Service = "matching"
	Timer    Service = "timer"
)

// Services lists them in the order in which tests go through them.
func Services() []Service { return []Service{Frontend, History, Matching, Timer} }

// repository is what the paths of all modules begin with.
const repository = "github.com/yardmaster-io/yardmaster/"

// natsServer is the server for clusters of NATS; a single one is in the command.
const natsServer = "github.com/nats-io/nats-server/v2"

// Binaries is a folder with the command and the four services.
type Binaries struct{ dir string }

// stripped leaves out what only debuggers read: half of the time of a link.
const stripped = "-ldflags=-s -w"

// Build builds what runs in a cluster into a temporary folder, with further flags of go build. It takes
// seconds with a warm build cache, a minute or two with a cold one. The caller removes it.
func Build(flags ...string) (Binaries, error) {
	dir, err := os.MkdirTemp("", "yard-cluster-")
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{dir}
	if err = b.add(append(flags, repository+"infra/yard")...); err == nil {
		err = b.BuildServices(flags...)
	}
	if err != nil {
		_ = b.Remove() // the build's error tells more
		return Binaries{}, err
	}
	return b, nil
}

// BuildServices builds the services of the folder with these flags of go build, and leaves the command as it is.
func (b Binaries) BuildServices(flags ...string) error {
	for _, s := range Services() {
		flags = append(flags, repository+"services/"+string(s)+"/cmd/"+string(s))
	}
	return b.add(flags...)
}

// add builds further programs into the folder; those that are there stay. It takes flags of go build, and packages.
func (b Binaries) add(what ...string) error {
	args := append([]string{"build", "-o", b.dir + string(filepath.Separator), stripped}, what...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build the binaries: %w\n%s", err, out)
	}
	return nil
}

// Remove deletes the folder.
func (b Binaries) Remove() error { return os.RemoveAll(b.dir) }

func (b Binaries) path(name string) string { return filepath.Join(b.dir, name) }
