package deployment

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestTheUnit: systemd reads it without a complaint, and finds little that the process could do but does not need.
func TestTheUnit(t *testing.T) {
	slow(t)
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skipf("left out: %v (Debian has it in the package systemd)", err)
	}
	text, err := os.ReadFile(filepath.Join(root, "infra/systemd/yard@.service"))
	testkit.NoError(t, err)
	// It looks for the program at its path.
	unit := filepath.Join(t.TempDir(), "yard@.service")
	testkit.NoError(t, os.WriteFile(unit, []byte(strings.Replace(string(text), "/usr/local/lib/yardmaster/%i", theImage(t).program("history"), 1)), 0o600))
	instance := strings.Replace(unit, "@", "@history", 1)
	testkit.NoError(t, os.Symlink(unit, instance))
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", instance).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	run(t, exec.Command("systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", unit))
}

// TestTheCommandOfTheUnit: each service takes its arguments and the environment file.
func TestTheCommandOfTheUnit(t *testing.T) {
	slow(t)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, "infra/systemd", name))
		testkit.NoError(t, err)
		return string(text)
	}
	started := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(read("yard@.service"))[1]
	var env []string
	for line := range strings.Lines(read("yard.env")) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			env = append(env, line)
		}
	}
	for _, name := range services {
		program, args, _ := strings.Cut(started, " ")
		testkit.Equal(t, "program", program, "/usr/local/lib/yardmaster/%i")
		for _, v := range env {
			key, value, _ := strings.Cut(v, "=")
			args = strings.ReplaceAll(args, "${"+key+"}", value)
		}
		cmd := exec.Command(theImage(t).program(name), append(strings.Fields(args), "--print-config")...)
		cmd.Env = env
		text := run(t, cmd)
		if !strings.Contains(text, "url: nats://127.0.0.1:4222") || name == "matching" && !strings.Contains(text, "127.0.0.1:6379") {
			t.Errorf("%s runs with\n%s", name, text)
		}
	}
}
