package command

import (
	"errors"
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
