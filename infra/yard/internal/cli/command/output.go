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

// output is the flag --output. It sets how everything is printed, errors too.
func (a *App) output() Value {
	show := func() string {
		switch {
		case a.JSON:
			return OutputJSON
		case a.Wide:
			return OutputWide
		default:
			return OutputTable
		}
	}
	return Value{"form", show, func(text string) error {
		switch text {
		case OutputTable, OutputWide, OutputJSON:
			a.JSON, a.Wide = text == OutputJSON, text == OutputWide
			return nil
		default:
			return errors.New("want table, wide or json")
		}
	}}
}
