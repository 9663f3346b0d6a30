package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// within bounds one block: it may have to build the command.
const within = 5 * time.Minute

// natsStateEnv names the file that makes this test program a `nats` command, where that keeps the last polled task.
const natsStateEnv = "YARD_DOCUMENTS_NATS"

func TestMain(m *testing.M) {
	if state := os.Getenv(natsStateEnv); state != "" {
		if err := natsCommand(state, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestShell runs the blocks of shell of all documents.
func TestShell(t *testing.T) {
	testkit.Slow(t, "builds the command and runs what the documents say")
	blocks, err := all(Root())
	testkit.NoError(t, err)
	world := newWorld(t)
	ran := 0
	for _, b := range blocks {
		if b.Language != "sh" {
			continue
		}
		if b.Why == "" && b.RunBy == "" {
			ran++
		}
		t.Run(b.Place(), func(t *testing.T) {
			switch {
			case b.RunBy != "":
				text, err := os.ReadFile(filepath.Join("../..", b.RunBy))
				if err != nil || !strings.Contains(string(text), b.File) {
					t.Errorf("%s: it is to be run by %s, which does not name %s (%v)", b.Place(), b.RunBy, b.File, err)
				}
			case b.Why == "":
				world.run(t, b)
			}
		})
	}
	if ran < 5 {
		t.Errorf("the documents have only %d blocks to run", ran)
	}
}

// world is what blocks are run in.
type world struct {
	root, url string
	env       []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.Abs("../..")
	testkit.NoError(t, err)
	bin, state := t.TempDir(), filepath.Join(t.TempDir(), "polled")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "yard"), "./infra/yard")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	testkit.NoError(t, err)
	shim := fmt.Sprintf("#!/bin/sh\n%s='%s' exec '%s' \"$@\"\n", natsStateEnv, state, self)
	testkit.NoError(t, os.WriteFile(filepath.Join(bin, "nats"), []byte(shim), 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{Tables: stack.TablesMemory})
	testkit.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		testkit.Check(t, s.Close(ctx))
	})
	nc, err := nats.Connect(s.URL, nats.Timeout(within))
	testkit.NoError(t, err)
	defer nc.Close()
	testkit.NoError(t, testkit.Err(ask(nc, "yard.v1.admin.domains.put", `{"domain":{"name":"shop"}}`, within)))
	return &world{root, s.URL, append(
		os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "NATS_URL="+s.URL,
		"XDG_CONFIG_HOME="+t.TempDir(),
	)}
}

// run runs a block and compares the answers that its comments show.
func (w *world) run(t *testing.T, b Block) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.Text)
	cmd.Env, cmd.Dir = w.env, t.TempDir()
	if strings.Contains(b.Text, "./") {
		cmd.Dir = w.root
	}
	// A file, since what goes on in the background would hold a pipe open.
	printed, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	testkit.NoError(t, err)
	defer func() { _ = printed.Close() }()
	cmd.Stdout, cmd.Stderr = printed, printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails where nothing is left
	out, readErr := os.ReadFile(printed.Name())
	if err != nil || readErr != nil {
		t.Fatalf("%s: %v, %v\n%s", b.Place(), err, readErr, out)
	}
	for _, m := range regexp.MustCompile(`(?m)^# (\{"\w+":)`).FindAllStringSubmatch(b.Text, -1) {
		if !bytes.Contains(out, []byte("\n"+m[1])) && !bytes.HasPrefix(out, []byte(m[1])) {
			t.Errorf("%s: no answer begins with %s\n%s", b.Place(), m[1], out)
		}
	}
}

// natsCommand is `nats request [--timeout D] SUBJECT BODY`.
func natsCommand(state string, args []string) error {
	timeout := 5 * time.Second
	if len(args) == 5 && args[1] == "--timeout" {
		var err error
		if timeout, err = time.ParseDuration(args[2]); err != nil {
			return err
		}
		args = append(args[:1], args[3:]...)
	}
	if len(args) != 3 || args[0] != "request" {
		return fmt.Errorf("want request [--timeout D] SUBJECT BODY, not %q", args)
	}
	body := args[2]
	polled, err := os.ReadFile(state)
	if err == nil {
		id, token, _ := strings.Cut(string(polled), " ")
		body = regexp.MustCompile(`"task_id":"[^"]*"`).ReplaceAllString(body, `"task_id":"`+id+`"`)
		body = regexp.MustCompile(`"token":"[^"]*"`).ReplaceAllString(body, `"token":"`+token+`"`)
	}
	nc, err := nats.Connect(os.Getenv("NATS_URL"), nats.Timeout(within))
	if err != nil {
		return err
	}
	defer nc.Close()
	answer, err := ask(nc, args[1], body, max(timeout, time.Minute))
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", answer)
	var read struct {
		Tasks []struct {
			ID    string `json:"task_id"`
			Token string `json:"token"`
		} `json:"tasks"`
		Verdicts []struct {
			Code string `json:"code"`
		} `json:"verdicts"`
	}
	if err := json.Unmarshal(answer, &read); err != nil {
		return err
	}
	for _, v := range read.Verdicts {
		if v.Code != "OK" {
			return fmt.Errorf("the verdict is %s", v.Code)
		}
	}
	if len(read.Tasks) > 0 && read.Tasks[0].Token != "" {
		return os.WriteFile(state, []byte(read.Tasks[0].ID+" "+read.Tasks[0].Token), 0o600)
	}
	return nil
}

func ask(nc *nats.Conn, subject, body string, timeout time.Duration) ([]byte, error) {
	answer, err := nc.Request(subject, []byte(body), timeout)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", subject, err)
	}
	if code := answer.Header.Get(fault.HeaderCode); code != "" {
		return nil, errors.New(string(answer.Data))
	}
	return answer.Data, nil
}
