package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// result is what became of the mutants of a package.
type result struct {
	Package string `json:"package"`
	// Total counts the mutants that compile; NotViable are the others.
	Total      int `json:"mutants"`
	Killed     int `json:"killed"`
	Lived      int `json:"lived"`
	NotCovered int `json:"not_covered"`
	// TimedOut hang. They are killed by their time-out, and not among Killed.
	TimedOut       int      `json:"timed_out"`
	NotViable      int      `json:"not_viable"`
	KilledPercent  float64  `json:"killed_percent"`
	CoveredPercent float64  `json:"covered_percent"`
	Mutants        []mutant `json:"mutations"`
}

func newResult(pkg string, mutants []mutant) result {
	r := result{Package: pkg, Mutants: mutants}
	for _, m := range mutants {
		switch m.Status {
		case statusKilled:
			r.Killed++
		case statusLived:
			r.Lived++
		case statusNotCovered:
			r.NotCovered++
		case statusTimedOut:
			r.TimedOut++
		case statusNotViable:
			r.NotViable++
		}
	}
	killed := r.Killed + r.TimedOut
	r.Total = killed + r.Lived + r.NotCovered
	r.KilledPercent = percent(killed, killed+r.Lived)
	r.CoveredPercent = percent(killed+r.Lived, r.Total)
	return r
}

// percent of a package without mutants is 100: nothing is missing.
func percent(part, whole int) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * float64(part) / float64(whole)
}

// below says which marks the package does not reach.
func (r result) below() []string {
	var findings []string
	if r.KilledPercent < killedMin {
		findings = append(findings, fmt.Sprintf("%s: %.1f %% killed, at least %d %% are wanted", r.Package, r.KilledPercent, killedMin))
	}
	if r.CoveredPercent < coveredMin {
		findings = append(findings, fmt.Sprintf("%s: %.1f %% covered, at least %d %% are wanted", r.Package, r.CoveredPercent, coveredMin))
	}
	return findings
}

func compareMutants(a, b mutant) int {
	return cmp.Or(
		strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.Column, b.Column), strings.Compare(a.Type, b.Type),
	)
}

// report prints the table, below it what was not killed, and last the findings.
func report(out io.Writer, results []result, findings []string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\npackage\tmutants\tkilled\tlived\tnot covered\ttimed out\t% killed\t% covered\t\n")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t\n",
			r.Package, r.Total, r.Killed, r.Lived, r.NotCovered, r.TimedOut, r.KilledPercent, r.CoveredPercent)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	list(out, results, statusLived, "lived")
	list(out, results, statusNotCovered, "not covered: no test comes there")
	list(out, results, statusTimedOut, "timed out: they hang, which kills them")
	list(out, results, statusNotViable, "do not compile, and do not count")
	if len(findings) > 0 {
		fmt.Fprintln(out, "\nfindings")
	}
	for _, f := range findings {
		fmt.Fprintf(out, "  %s\n", f)
	}
	return nil
}

// list prints the mutants of one status, if there are any.
func list(out io.Writer, results []result, status, title string) {
	for _, r := range results {
		for _, m := range r.Mutants {
			if m.Status != status {
				continue
			}
			if title != "" {
				fmt.Fprintf(out, "\n%s\n", title)
				title = ""
			}
			fmt.Fprintf(out, "  %s/%s:%d:%d %s in %s", r.Package, m.File, m.Line, m.Column, m.Type, m.Func)
			if m.Reason != "" {
				fmt.Fprintf(out, ": %s", m.Reason)
			} else if status == statusLived {
				fmt.Fprint(out, ": NO REASON")
			}
			fmt.Fprintln(out)
		}
	}
}

// writeJSON writes all results, with every mutant, to a file.
func writeJSON(at string, results []result, findings []string) error {
	data, err := json.MarshalIndent(struct {
		Packages []result `json:"packages"`
		Findings []string `json:"findings"`
	}{results, findings}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(at, append(data, '\n'), 0o644)
}
