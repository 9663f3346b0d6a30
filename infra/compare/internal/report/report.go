// Package report makes medians and ratios of the runs, and writes them as Markdown, JSON and a picture.
//
// Owns: how runs become one number, and the three files.
//
// Never does: measure.
//
// On failure: a system that failed in a run has no number of that run, and the page names the failure.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
)

// Own is the system that the others are compared with.
const Own = "yardmaster"

// Report is a whole comparison, as it is written to the JSON file.
type Report struct {
	At      time.Time `json:"at"`
	Machine Machine   `json:"machine"`
	// Command that makes it again.
	Command         string  `json:"command"`
	Runs            int     `json:"runs"`
	DurationSeconds float64 `json:"duration_seconds"`
	// SyncMS is one sync of this disk: a quantile over all runs.
	SyncMS SyncCost `json:"sync_ms"`
	// OtherCores is how many cores other programs used, the median of all runs.
	OtherCores float64 `json:"other_cores"`
	// Skipped says which systems are missing on this machine, Failures what failed.
	Skipped  []string  `json:"skipped,omitempty"`
	Failures []string  `json:"failures,omitempty"`
	Settings []Setting `json:"settings"`
	Ratios   []Ratio   `json:"ratios"`
}

// SyncCost is the time of one sync, in ms.
type SyncCost struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Duration is how long each workload of a run lasts.
func (r *Report) Duration() time.Duration {
	return time.Duration(r.DurationSeconds * float64(time.Second))
}

// Setting is a system at one setting of durability.
type Setting struct {
	System   string `json:"system"`
	Version  string `json:"version"`
	Sync     string `json:"sync"`
	Settings string `json:"settings"`
	// Runs are in order; one that failed has no values.
	Runs   []load.Values `json:"runs"`
	Median load.Values   `json:"median"`
}

// Ratio is Yardmaster's number by that of another system at the same setting of durability.
type Ratio struct {
	System string `json:"system"`
	Sync   string `json:"sync"`
	Metric string `json:"metric"`
	// Ratio is the median of Runs, each of which is of two measurements of one run.
	Ratio float64   `json:"ratio"`
	Runs  []float64 `json:"runs"`
}

// Summarize fills in the medians and the ratios.
func (r *Report) Summarize() {
	for i := range r.Settings {
		r.Settings[i].summarize()
	}
	r.Ratios = nil
	for _, s := range r.Settings {
		own := r.setting(Own, s.Sync)
		if s.System == Own || own == nil {
			continue
		}
		for _, m := range load.Metrics {
			ratio := Ratio{System: s.System, Sync: s.Sync, Metric: m.Key}
			for i := range min(len(s.Runs), len(own.Runs)) {
				if mine, theirs := own.Runs[i][m.Key], s.Runs[i][m.Key]; mine > 0 && theirs > 0 {
					ratio.Runs = append(ratio.Runs, mine/theirs)
				}
			}
			if len(ratio.Runs) > 0 {
				ratio.Ratio = Median(ratio.Runs)
				r.Ratios = append(r.Ratios, ratio)
			}
		}
	}
}

func (s *Setting) summarize() {
	all := map[string][]float64{}
	for _, values := range s.Runs {
		for key, v := range values {
			all[key] = append(all[key], v)
		}
	}
	s.Median = load.Values{}
	for key, values := range all {
		s.Median[key] = Median(values)
	}
}

// setting finds one; nil if there is none.
func (r *Report) setting(system, sync string) *Setting {
	i := slices.IndexFunc(r.Settings, func(s Setting) bool { return s.System == system && s.Sync == sync })
	if i < 0 {
		return nil
	}
	return &r.Settings[i]
}

// ratio finds one; 0 if there is none.
func (r *Report) ratio(system, sync, metric string) float64 {
	for _, x := range r.Ratios {
		if x.System == system && x.Sync == sync && x.Metric == metric {
			return x.Ratio
		}
	}
	return 0
}

// Median is the middle of values, or the mean of both in the middle. It is 0 if there are none.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Write writes compare.md, compare.json and compare.svg into a folder.
func (r *Report) Write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	for name, text := range map[string]string{
		"compare.json": string(data) + "\n", "compare.md": r.Markdown(), "compare.svg": r.SVG(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

// Line is one run in one line.
func Line(v load.Values) string {
	return fmt.Sprintf("W1 %s/s, W2 %s/s, W3 p50 %s ms, p99 %s ms, W4 %s/s, W5 %s/s, then %s/s; W1 takes %s µs of CPU per task",
		number(v["w1_per_s"]), number(v["w2_per_s"]), number(v["w3_p50_ms"]), number(v["w3_p99_ms"]), number(v["w4_per_s"]),
		number(v["w5_accepted_per_s"]), number(v["w5_drained_per_s"]), number(v["w1_cpu_us"]))
}
