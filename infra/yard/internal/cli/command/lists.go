package command

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"math"
	"time"
)

// Gather returns what is yielded, up to the first error.
func Gather[T any](items iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range items {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// FirstOf gathers pages until there are as many items as wanted; 0 = all. It reports whether there may be more.
func FirstOf[T any](limit int, page func() (items []T, next string, err error)) (all []T, more bool, err error) {
	if limit < 0 {
		return nil, false, Usagef("--limit %d: want a number, or 0 for all", limit)
	}
	limit = cmp.Or(limit, math.MaxInt)
	for {
		items, next, err := page()
		if err != nil {
			return nil, false, err
		}
		if all = append(all, items...); next == "" || len(all) >= limit {
			return all[:min(len(all), limit)], next != "" || len(all) > limit, nil
		}
	}
}

// Each converts a list.
func Each[T, W any](all []T, convert func(T) W) []W {
	converted := make([]W, len(all))
	for i, one := range all {
		converted[i] = convert(one)
	}
	return converted
}

// purgeReportEvery is how often a purge says how far it is.
const purgeReportEvery = 2 * time.Second

// Reporter says how far a command is that goes step by step.
type reporter struct {
	out  io.Writer
	done string
	last time.Time
}

// Reporter makes a reporter of what is done.
func (a *App) Reporter(done string) *reporter { return &reporter{a.Err, done, time.Now()} }

// Step reports that so many were found and done, from time to time.
func (r *reporter) Step(found, done int64) {
	if time.Since(r.last) >= purgeReportEvery {
		r.last = time.Now()
		fmt.Fprintf(r.out, "%d found, %d %s\n", found, done, r.done)
	}
}

// Given returns the error that ended it, and says how far it was.
func (r *reporter) Given(err error, found, done int64) error {
	if found > 0 {
		fmt.Fprintf(r.out, "%d found, %d %s, and it is not over\n", found, done, r.done)
	}
	return err
}

// CheckRate refuses a rate at which nothing goes on.
func CheckRate(rate int, of string) error {
	if rate < 1 {
		return Usagef("--rate %d: want at least one %s a second", rate, of)
	}
	return nil
}

// Commands that cannot be taken back show first what they would do.
const (
	YesUsage = "do it; without this flag, it is shown what would be done, and nothing is changed"
	NotDone  = "nothing was changed: repeat the command with --yes to do it"
)
