package cli

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// verbs are what commands below a noun may be called. One word is one idea: put creates or replaces what has a name and is set, create makes what has a life of its
// own; delete removes a record, cancel ends tasks, and purge cancels all tasks of something.
var verbs = []string{
	"put", "get", "list", "delete", "create", "close", "use", "top", "usage", "describe", "pollers", "peek", "count", "next", "queues", "status", "explain", "trace", "watch", "wait",
	"submit", "update", "run-now", "cancel", "purge", "redrive", "unblock", "skip", "pause", "drain", "resume", "stop", "trigger", "backfill",
	"verify", "restore", "render", "finalize", "nats", "curves", "stuck", "end", "schema", "migrate",
}

// confirmed are the commands that end or delete tasks or what is left of them, or that cannot be taken back. Without --yes they change nothing.
var confirmed = []string{
	"yard task cancel", "yard task update", "yard batch cancel", "yard keys skip", "yard dead redrive", "yard dead delete", "yard tasklist purge", "yard type purge", "yard group purge",
	"yard quarantine delete", "yard relay delete", "yard upgrade finalize", "yard task end",
}

func tree() *cobra.Command {
	a := &command.App{Streams: Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}}
	return root(a)
}

// Each verb is one of the list, and each noun that can be set has put, get, list and delete. show is get, and nothing else has two names.
func TestVerbsAreFromOneList(t *testing.T) {
	visit(tree(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		switch {
		case !cmd.HasParent():
		case cmd.Parent().HasParent() && !slices.Contains(verbs, cmd.Name()):
			t.Errorf("%s: %q is none of the verbs", path, cmd.Name())
		}
		aliases := []string{}
		if cmd.Name() == "get" {
			aliases = []string{"show"}
		}
		if !slices.Equal(append([]string{}, cmd.Aliases...), aliases) {
			t.Errorf("%s has the other names %q, want %q", path, cmd.Aliases, aliases)
		}
		var below []string
		for _, one := range cmd.Commands() {
			below = append(below, one.Name())
		}
		if slices.Contains(below, "put") {
			for _, verb := range []string{"get", "list", "delete"} {
				if !slices.Contains(below, verb) {
					t.Errorf("%s has put and no %s", path, verb)
				}
			}
		}
	})
}

// What ends or deletes tasks is confirmed in one manner, and nothing else has a manner of its own.
func TestWhatEndsTasksWantsYes(t *testing.T) {
	var found []string
	visit(tree(), func(cmd *cobra.Command) {
		for _, other := range []string{"dry-run", "force", "confirm"} {
			if cmd.Flags().Lookup(other) != nil {
				t.Errorf("%s has --%s: the manner is a preview without --yes", cmd.CommandPath(), other)
			}
		}
		yes := cmd.Flags().Lookup("yes")
		if yes == nil {
			return
		}
		found = append(found, cmd.CommandPath())
		if yes.DefValue != "false" || !strings.HasSuffix(yes.Usage, command.YesUsage) || !strings.Contains(cmd.Example, "--yes") {
			t.Errorf("%s: --yes says %q, its default is %s, and an example of it is wanted:\n%s", cmd.CommandPath(), yes.Usage, yes.DefValue, cmd.Example)
		}
	})
	want := slices.Clone(confirmed)
	slices.Sort(want)
	slices.Sort(found)
	if !slices.Equal(found, want) {
		t.Errorf("--yes is wanted by %q, want %q", found, want)
	}
	visit(tree(), func(cmd *cobra.Command) {
		if slices.Contains([]string{"cancel", "purge", "skip"}, cmd.Name()) && !slices.Contains(confirmed, cmd.CommandPath()) {
			t.Errorf("%s ends tasks and has no --yes", cmd.CommandPath())
		}
	})
}

// Flags of one name mean one thing everywhere, durations may have weeks and days, and how many lines are shown is --limit or -n.
func TestFlagsAreAlike(t *testing.T) {
	shorts := map[string]string{}
	visit(tree(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "duration" {
				if err := f.Value.Set("1w2d3h"); err != nil || f.Value.String() != (219*time.Hour).String() {
					t.Errorf("%s --%s takes 1w2d3h for %s: %v", cmd.CommandPath(), f.Name, f.Value, err)
				}
			}
			if f.Name == "limit" && f.Shorthand != "n" {
				t.Errorf("%s --limit has no -n", cmd.CommandPath())
			}
			if f.Shorthand != "" {
				if shorts[f.Shorthand] == "" {
					shorts[f.Shorthand] = f.Name
				}
				if shorts[f.Shorthand] != f.Name {
					t.Errorf("%s: -%s is --%s here, and --%s elsewhere", cmd.CommandPath(), f.Shorthand, f.Name, shorts[f.Shorthand])
				}
			}
		})
	})
}

// substitution is what a shell replaces by the output of a command.
var substitution = regexp.MustCompile(`\$\([^)]*\)`)

// Each command has an example, and the command of an example exists with its flags.
func TestExamplesAreCommands(t *testing.T) {
	visit(tree(), func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() && strings.TrimSpace(cmd.Example) == "" && cmd.Parent().Name() != "completion" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			_, args, found := strings.Cut(line, "yard ")
			if !found {
				t.Errorf("%s: the example %q has no command", cmd.CommandPath(), line)
				continue
			}
			args, _, _ = strings.Cut(args, "   #")
			args, _, _ = strings.Cut(args, " && ")
			words := wordsOf(substitution.ReplaceAllString(args, "1"))
			target, rest, err := tree().Find(words)
			if err != nil || target.HasSubCommands() && !target.Runnable() {
				t.Errorf("%s: %q is no command: %v", cmd.CommandPath(), line, err)
				continue
			}
			target.InheritedFlags()
			if err := target.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", cmd.CommandPath(), line, err)
			}
		}
	})
}

// wordsOf splits a line as a shell does that has single and double quotes only.
func wordsOf(line string) (words []string) {
	word, quote, begun := "", rune(0), false
	for _, r := range strings.TrimSpace(line) + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(r), true
		}
	}
	return words
}

// Times are printed with their zone, and a printed time is taken by flags.
func TestTimesHaveTheirZone(t *testing.T) {
	zone := time.FixedZone("east", 5*3600+1800)
	if got := time.Date(2026, 11, 30, 15, 4, 5, 6e6, zone).Format(command.TimeForm); got != "2026-11-30 15:04:05.006+05:30" {
		t.Errorf("a time is printed as %s", got)
	}
	printed := command.At(1_764_000_000_123)
	for _, text := range []string{printed, "2026-12-24T18:00:00+01:00", "2026-12-24T18:00:00Z"} {
		if _, err := command.ParseTime("at", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if at, err := command.ParseTime("at", printed); err != nil || at.UnixMilli() != 1_764_000_000_123 {
		t.Errorf("%s is read as %v: %v", printed, at, err)
	}
	if _, err := command.ParseTime("at", "tomorrow"); err == nil {
		t.Error("tomorrow is taken for a time")
	}
}
