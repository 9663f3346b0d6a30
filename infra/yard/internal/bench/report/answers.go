package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Answers is how long reads took while many tasks waited.
type Answers struct {
	// Waiting is how many tasks waited.
	Waiting int        `json:"waiting"`
	All     []Answered `json:"answers"`
}

// Answered is how long one kind of read took.
type Answered struct {
	Of   string    `json:"of"`
	Took Quantiles `json:"took_us"`
}

func (a Answered) String() string {
	return fmt.Sprintf("%s %s, max %.2f", a.Of, a.Took, a.Took.Max/1000)
}

// key is the worst p99.
func (a *Answers) key() float64 {
	worst := 0.0
	for _, one := range a.All {
		worst = max(worst, one.Took.P99)
	}
	return worst
}

// slowest is how many reads a line has.
const slowest = 5

func (a *Answers) line(Result) string {
	all := slices.SortedFunc(slices.Values(a.All), func(a, b Answered) int { return cmp.Compare(b.Took.P99, a.Took.P99) })
	line := fmt.Sprintf("%d reads while %d tasks wait, the slowest:", len(all), a.Waiting)
	for _, one := range all[:min(slowest, len(all))] {
		line += " " + one.String() + ";"
	}
	return line
}
