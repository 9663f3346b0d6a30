package backup

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	domain   = "shop"
	tasklist = "mail"
	// within bounds what a healthy run does in a second.
	within = 2 * time.Minute
)

// build builds the command.
func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "yard")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../infra/yard").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// dev is a running `yard dev`, and a client of it.
type dev struct {
	t      *testing.T
	cmd    *exec.Cmd
	client *yard.Client
	nats   *nats.Conn
}

// start starts one on a folder. It is killed at the test's end if it still runs then.
func start(t *testing.T, binary, data string) *dev {
	t.Helper()
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	testkit.NoError(t, err)
	d := &dev{t: t, cmd: exec.Command(binary, "dev", "--json", "--data-dir", data, "--port", "0", "--tables", "memory", "--domain", domain)}
	d.cmd.Stderr = said
	out, err := d.cmd.StdoutPipe()
	testkit.NoError(t, err)
	testkit.NoError(t, d.cmd.Start())
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // fails where it has ended
		_ = d.cmd.Wait()
		if text, err := os.ReadFile(said.Name()); t.Failed() {
			t.Logf("on %s it said (%v):\n%s", data, err, text)
		}
		_ = said.Close()
	})
	var hello struct{ URL string }
	testkit.NoError(t, json.NewDecoder(out).Decode(&hello))
	if d.client, err = yard.Connect(hello.URL, domain, yard.WithTimeout(within)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.client.Close)
	d.nats, err = nats.Connect(hello.URL)
	testkit.NoError(t, err)
	t.Cleanup(d.nats.Close)
	return d
}

// inside is the JetStream of its server.
func (d *dev) inside() jetstream.JetStream {
	d.t.Helper()
	js, err := jetstream.New(d.nats)
	testkit.NoError(d.t, err)
	return js
}

// stop lets it drain, as `kill` does.
func (d *dev) stop() {
	d.t.Helper()
	testkit.NoError(d.t, d.cmd.Process.Signal(syscall.SIGTERM))
	if err := d.cmd.Wait(); err != nil {
		d.t.Fatalf("it did not stop cleanly: %v", err)
	}
}

// pause halts all its threads where they are.
func (d *dev) pause() {
	d.t.Helper()
	testkit.NoError(d.t, d.cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(d.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		d.t.Fatalf("it is not paused: %v, status %v", err, status)
	}
}

// copied copies a folder.
func copied(t *testing.T, data string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backup")
	testkit.NoError(t, os.CopyFS(to, os.DirFS(data)))
	return to
}

func long(t *testing.T) {
	t.Helper()
	testkit.Slow(t, "builds the command, and starts it as processes")
}
