package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// What --output takes.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
)

// outputValue is the flag --output. It sets how everything is printed, errors too.
type outputValue struct{ a *app }

func (v outputValue) String() string {
	switch {
	case v.a == nil: // as pflag asks of the zero value
		return ""
	case v.a.json:
		return outputJSON
	case v.a.wide:
		return outputWide
	default:
		return outputTable
	}
}

func (v outputValue) Set(text string) error {
	switch text {
	case outputTable, outputWide, outputJSON:
		v.a.json, v.a.wide = text == outputJSON, text == outputWide
		return nil
	default:
		return errors.New("want table, wide or json")
	}
}

func (v outputValue) Type() string { return "form" }

// outputFlags adds how to print.
func (a *app) outputFlags(flags *pflag.FlagSet) {
	flags.VarP(outputValue{a}, "output", "o", "how to print: table, wide (a table with more columns, nothing cut) or json")
	flags.BoolFunc("json", "short for --output json", func(text string) error {
		if text != "true" {
			return fmt.Errorf("want no value, or another --output")
		}
		return outputValue{a}.Set(outputJSON)
	})
}
