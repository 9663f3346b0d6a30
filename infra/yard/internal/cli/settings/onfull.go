package settings

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

const onFullFlagName, onFullAfterFlagName = "on-full", "on-full-after"

// onFullFlags adds the flags of what a limit does that is full.
func onFullFlags(flags *pflag.FlagSet, l *yard.Limit) {
	flags.Var(onFull(l), onFullFlagName, "what happens to a task that has waited for a slot: wait, reject-newest or cancel-oldest")
	command.DurationVar(flags, &l.OnFullAfter, onFullAfterFlagName, l.OnFullAfter, "how long a task waits until --on-full acts, 100ms to 24h; 0 = 1s")
}

// onFull is what a full limit does, on the command line: "reject-newest".
func onFull(l *yard.Limit) command.Value {
	show := func() string { return strings.ReplaceAll(string(l.OnFull), "_", "-") }
	return command.Value{Kind: "policy", Show: show, Parse: func(text string) error {
		switch one := yard.OnFull(strings.ReplaceAll(text, "-", "_")); one {
		case yard.OnFullWait, yard.OnFullRejectNewest, yard.OnFullCancelOldest:
			if l.OnFull = one; one == yard.OnFullWait {
				l.OnFullAfter = 0
			}
			return nil
		}
		return errors.New("want wait, reject-newest or cancel-oldest")
	}}
}

// onFullText is a policy for people, "" where tasks wait.
func onFullText(l yard.Limit) string {
	after := cmp.Or(l.OnFullAfter, time.Second)
	switch l.OnFull {
	case yard.OnFullRejectNewest:
		return fmt.Sprintf("full: rejects the newest after %v", after)
	case yard.OnFullCancelOldest:
		return fmt.Sprintf("full: cancels the oldest after %v", after)
	}
	return ""
}
