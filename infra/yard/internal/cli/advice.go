package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// advice is what to do about an error of cmd, in one sentence. It is empty where the
// error says so itself, by a command or a flag, or where there is nothing to do.
func advice(cmd *cobra.Command, err error) string {
	var unfinished *yard.TaskError
	var f *fault.Error
	switch {
	case errors.As(err, &unfinished):
		return "`yard task get " + unfinished.TaskID + "` shows its whole history"
	case errors.As(err, &f) && f.Code == fault.NotFound && f.Path == "" && strings.HasPrefix(f.Message, "there is no domain "):
		return "--domain names another domain, `yard domain list` lists them"
	case errors.As(err, &f):
		if advised(f.Message) {
			return ""
		}
		return adviceOfCode(cmd, f)
	case advised(err.Error()):
		return ""
	case errors.As(err, new(command.UsageError)):
		return "see `" + cmd.CommandPath() + " --help`"
	case errors.Is(err, context.DeadlineExceeded):
		return "`yard status` shows which services are ready; --timeout allows more time"
	}
	return ""
}

// advised tells whether a message names a command or a flag.
func advised(message string) bool {
	return strings.Contains(message, "`yard ") || strings.Contains(message, "--")
}

func adviceOfCode(cmd *cobra.Command, f *fault.Error) string {
	switch f.Code {
	case fault.NotFound:
		next := "`" + listOf(cmd) + "` lists them"
		if path := cmd.CommandPath(); strings.HasPrefix(path, "yard task ") || strings.HasPrefix(path, "yard type ") {
			next += "; --domain names another domain"
		}
		return next
	case fault.InvalidArgument, fault.InvalidTime:
		return "see `" + cmd.CommandPath() + " --help`"
	case fault.ResourceExhausted:
		if f.RetryAfter > 0 {
			return "try again in " + f.RetryAfter.Round(time.Millisecond).String()
		}
		return "try again in a moment"
	case fault.Unavailable:
		return "nothing was done: try again; `yard status` shows which services are ready"
	case fault.Unknown:
		return "it may have been done: check before you repeat it, with `" + listOf(cmd) + "`"
	case fault.Internal:
		return "`yard status` shows what is wrong; the services' logs say more"
	}
	return ""
}

// listOf is the command that lists what cmd is about.
func listOf(cmd *cobra.Command) string {
	if above := cmd.Parent(); above != nil && above.HasParent() {
		for _, below := range above.Commands() {
			if below.Name() == "list" {
				return below.CommandPath()
			}
		}
	}
	return "yard task list"
}
