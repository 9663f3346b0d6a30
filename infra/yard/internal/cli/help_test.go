package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
)

func TestHelp(t *testing.T) {
	seen := 0
	var look func(path ...string)
	look = func(path ...string) {
		seen++
		out, errs, code := run(t, "", append(path, "--help")...)
		if code != cli.ExitOK || errs != "" || !strings.Contains(out, "Usage:") {
			t.Errorf("yard %q --help: exit code %d\n%s%s", path, code, out, errs)
		}
		if strings.Contains(out, "(default 0s)") {
			t.Errorf("yard %q shows a default of 0, which means another one", path)
		}
		_, below, group := strings.Cut(out, "\nAvailable Commands:\n")
		if !group && !strings.Contains(out, "\nExamples:\n") && path[0] != "completion" && path[0] != "help" {
			t.Errorf("yard %q has no example", path)
		}
		for line := range strings.Lines(below) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name == "" {
				break
			}
			look(append(slices.Clone(path), name)...)
		}
	}
	look()
	if seen < 70 {
		t.Errorf("there are %d commands", seen)
	}
}

func TestAMisspelledCommandIsSuggested(t *testing.T) {
	for args, want := range map[string]string{"tsak list": "`yard task`", "task lst": "`yard task list`", "deaad": "`yard dead`"} {
		if _, errs, code := run(t, "", strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(errs, "did you mean "+want) {
			t.Errorf("yard %s: exit code %d, %s", args, code, errs)
		}
	}
}

func TestAMisspelledFlagIsSuggested(t *testing.T) {
	for args, want := range map[string]string{"task list --tasklst mail": "did you mean --tasklist?", "dead list --untl 7d": "did you mean --until?", "task list --colour": "unknown flag: --colour\n"} {
		if _, errs, code := run(t, "", strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("yard %s: exit code %d, %s", args, code, errs)
		}
	}
}

// show is get.
func TestShowIsGet(t *testing.T) {
	get, _, _ := run(t, "", "task", "get", "--help")
	if show, errs, code := run(t, "", "task", "show", "--help"); code != cli.ExitOK || show != get || !strings.Contains(show, "get, show") {
		t.Errorf("exit code %d, %s%s", code, show, errs)
	}
}
