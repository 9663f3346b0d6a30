package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Exit codes with a meaning of their own, as in sysexits.h. 0 completes the task, and all
// others are failures that the task's retry policy decides about.
const (
	// ExitBadData (EX_DATAERR): no other attempt would do better. The task is dead at once.
	ExitBadData = 65
	// ExitRetryLater (EX_TEMPFAIL): try again after Runner.RetryAfter, rather than when the retry policy
	// says. The failure is counted.
	ExitRetryLater = 75
)

// Types of the failures, for programs to match. The type of an exit code is its number behind exitType.
const (
	exitType   = "exit_"
	signalType = "signal"
)

// failure is why a program's attempt failed.
type failure struct {
	name, message string
}

func (f failure) Error() string     { return f.message }
func (f failure) ErrorType() string { return f.name }

// outcomeOf says what an ended program made of its task. err is that of exec.Cmd's Wait, last its last line on
// standard error.
func (r *Runner) outcomeOf(err error, out *capture, last string) (yard.Payload, error) {
	var exit *exec.ExitError
	switch {
	case err == nil && out.over:
		return yard.Payload{}, yard.NonRetryable(failure{yard.TypeBadResult, fmt.Sprintf("the program wrote more than the %d bytes that a result may have", out.max)})
	case err == nil:
		return resultOf(out.data)
	case !errors.As(err, &exit):
		return yard.Payload{}, fmt.Errorf("the program did not finish: %w", err)
	case !exit.Exited():
		return yard.Payload{}, failure{signalType, said("the program was ended by a "+exit.String(), last)}
	}
	code := exit.ExitCode()
	why := failure{exitType + strconv.Itoa(code), said(fmt.Sprintf("the program ended with exit code %d", code), last)}
	switch code {
	case ExitBadData:
		return yard.Payload{}, yard.NonRetryable(why)
	case ExitRetryLater:
		return yard.Payload{}, yard.RetryAfter(why, r.RetryAfter)
	}
	return yard.Payload{}, why
}

func said(what, last string) string {
	if last == "" {
		return what
	}
	return what + ": " + last
}

// resultOf makes a result of what a program wrote: none of white space, a JSON value as it
// stands, other text as a JSON string without its last line break, and other bytes as they are.
func resultOf(out []byte) (yard.Payload, error) {
	text := bytes.TrimSpace(out)
	switch {
	case len(text) == 0:
		return yard.Payload{}, nil
	case codec.ValidJSON(text):
		return yard.NewPayload(json.RawMessage(text))
	case utf8.Valid(out):
		return yard.NewPayload(strings.TrimSuffix(strings.TrimSuffix(string(out), "\n"), "\r"))
	default:
		return yard.NewPayload(out)
	}
}
