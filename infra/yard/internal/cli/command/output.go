package command

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// What --output takes.
const (
	OutputTable = "table"
	OutputWide  = "wide"
	OutputJSON  = "json"
)

// outputValue is the flag --output. It sets how everything is printed, errors too.
type outputValue struct{ a *App }

func (v outputValue) String() string {
	switch {
	case v.a == nil: // as pflag asks of the zero value
		return ""
	case v.a.JSON:
		return OutputJSON
	case v.a.Wide:
		return OutputWide
	default:
		return OutputTable
	}
}

func (v outputValue) Set(text string) error {
	switch text {
	case OutputTable, OutputWide, OutputJSON:
		v.a.JSON, v.a.Wide = text == OutputJSON, text == OutputWide
		return nil
	default:
		return errors.New("want table, wide or json")
	}
}

func (v outputValue) Type() string { return "form" }

// OutputFlags adds how to print.
func (a *App) OutputFlags(flags *pflag.FlagSet) {
	flags.VarP(outputValue{a}, "output", "o", "how to print: table, wide (a table with more columns, nothing cut) or json")
	flags.BoolFunc("json", "short for --output json", func(text string) error {
		if text != "true" {
			return fmt.Errorf("want no value, or another --output")
		}
		return outputValue{a}.Set(OutputJSON)
	})
}
