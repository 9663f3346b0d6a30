package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

// Defaults and limits of Options.
const (
	durationDefault = time.Minute
	scaleDefault    = 1.0
	scaleMax        = 100.0
)

// Options are what a caller chooses.
type Options struct {
	// Connect makes a connection to NATS for a tenant, by its domain, or with an empty domain for the operator,
	// who makes the domains. The demo closes it. Required.
	Connect func(domain string) (*nats.Conn, error)
	// Out takes the view, the progress and the summary. Required.
	Out io.Writer
	// Interactive asks for the live view; it is shown where Out is a terminal.
	// Otherwise a line of progress comes every 2 s. While the view is shown,
	// nothing else should write to the terminal.
	Interactive bool
	// JSON replaces all output by the summary as one JSON object.
	JSON bool
	// Duration is how long tasks are handed in. Default 60 s.
	Duration time.Duration
	// Scale multiplies the number of tasks, above 0 to 100. Default 1, which is
	// about 160 tasks a second. Payouts do not grow with it.
	Scale float64
	// Seed repeats the tasks of an earlier run. Default 0: a fresh one.
	Seed uint64
	// Log takes the warnings of the demo's programs. Default: none are kept.
	Log *slog.Logger
	// Command is how the reader runs the yard command, for hints. Default "yard".
	Command string
	// Shop are the flags by which commands reach the engine as the shop, for hints.
	// Default: none, they find it by themselves.
	Shop string
	// Console is the URL of the engine's console, for hints. Default: there is none.
	Console string
}

func (o *Options) complete() error {
	if o.Connect == nil || o.Out == nil {
		return errors.New("the demo needs a way to connect and a place to write to")
	}
	o.Duration = cmp.Or(o.Duration, durationDefault)
	o.Scale = cmp.Or(o.Scale, scaleDefault)
	if o.Duration < 0 || o.Scale < 0 || o.Scale > scaleMax {
		return fmt.Errorf("the demo's duration %v must be positive and its scale %v in 0..%v", o.Duration, o.Scale, scaleMax)
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Command = cmp.Or(o.Command, "yard")
	return nil
}

// elsewhere is a command for another terminal while the demo runs.
func (o *Options) elsewhere() string {
	command := o.Command
	if o.Shop != "" {
		command += " " + o.Shop
	}
	command += " task list --domain shop"
	if o.Console != "" {
		command += ", or open " + o.Console
	}
	return command
}
