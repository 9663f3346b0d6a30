package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// I14: an error has lines, and does nothing else to a terminal.
func TestI14_ErrorsAreTextOnly(t *testing.T) {
	var out bytes.Buffer
	printError(&command.App{Streams: Streams{Err: &out}}, errors.New("a\x1b[2Jb\u009b0mc\u202ed\x7f\r\ne\rf\tg"), "")
	if text := out.String(); strings.ContainsAny(text, "\x1b\u009b\u202e\x7f\r\t") || strings.Count(text, "\n") != 2 {
		t.Errorf("%q", text)
	}
}
