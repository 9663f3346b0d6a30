package report

import (
	"fmt"
	"slices"
	"strings"
)

// Ratio compares the runs of one workload that took turns under two settings of sync.
type Ratio struct {
	Workload string `json:"workload"`
	// Sync and By are the settings: the deciding number under Sync by that under By.
	Sync string `json:"sync"`
	By   string `json:"by"`
	// Ratio is the median of Runs, which are of the pairs that ran one after the other.
	Ratio float64   `json:"ratio"`
	Runs  []float64 `json:"runs"`
}

// RatioOf is the ratio of runs in the order in which they were done, as many of a as of b.
func RatioOf(a, b []Result) Ratio {
	r := Ratio{Workload: a[0].Workload, Sync: a[0].Sync, By: b[0].Sync}
	for i := range a {
		r.Runs = append(r.Runs, Round3(a[i].key()/b[i].key()))
	}
	sorted := slices.Sorted(slices.Values(r.Runs))
	r.Ratio = sorted[(len(sorted)-1)/2]
	return r
}

func (r Ratio) line() string {
	return fmt.Sprintf("%s\tsync %s by %s: %.2f of %s", r.Workload, r.Sync, r.By, r.Ratio, strings.Trim(fmt.Sprintf("%.2f", r.Runs), "[]"))
}
