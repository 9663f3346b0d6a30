package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
)

const introduction = `# Side by side

Task queues that a Go program may use, measured on one machine, one after the other. This page is the output of
[compare](../compare/README.md).

![bars of the tables below](compare.svg)

Each number is a median; runs: %d. A ratio is Yardmaster's number by the one of the system, and the median of the
ratios of the runs: within a run the systems take turns. **Bold** is where Yardmaster is better: a ratio above 1 of a
rate, below 1 of a latency or a cost. Each handler does nothing, and each payload has 256 bytes. Producers and handlers
are in one process, the servers in others; the CPU time is that of all of them.

- **W1 in bulk**: 8 producers submit 100 tasks per request, beside workers.
- **W2 one by one**: 64 producers submit one task per request and wait for the answer, beside workers.
- **W3 submit to handler**: 500 tasks per second, from the call of submit to the start of the handler.
- **W4 due at one instant**: %d delayed tasks, or fewer if a system accepts fewer in %v.
- **W5 accepted without worker, drained then**: W1 without workers, then workers without producers.
`

// columnsMax is the length of a line that e2e/tidy allows.
const columnsMax = 120

// Markdown is the page.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, r.Runs, load.Waiting(r.Duration()), r.Duration())
	for _, sync := range r.syncs() {
		fmt.Fprintf(&b, "\n## %s\n\n", heading(sync))
		r.table(&b, sync)
	}
	r.oneSync(&b)
	r.circumstances(&b)
	return b.String()
}

// syncs are the settings of durability that were measured, in order.
func (r *Report) syncs() (all []string) {
	for _, s := range r.Settings {
		if !slices.Contains(all, s.Sync) {
			all = append(all, s.Sync)
		}
	}
	return all
}

func heading(sync string) string {
	if sync == "always" {
		return "Accepted tasks are on disk before the answer"
	}
	return "A power cut may lose the last second"
}

// table is one setting of durability: a row for each metric, a column for each system.
func (r *Report) table(b *strings.Builder, sync string) {
	var columns []Setting
	for _, s := range r.Settings {
		if s.Sync == sync {
			columns = append(columns, s)
		}
	}
	rows := [][]string{{""}, {"---"}}
	for _, s := range columns {
		rows[0], rows[1] = append(rows[0], s.System), append(rows[1], "---:")
	}
	for _, m := range load.Metrics {
		row := []string{m.Name + ", " + m.Unit}
		for _, s := range columns {
			row = append(row, cell(m, s.Median[m.Key], r.ratio(s.System, sync, m.Key)))
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// cell is a number with the ratio to it.
func cell(m load.Metric, value, ratio float64) string {
	if value == 0 {
		return "-"
	}
	text := number(value)
	if ratio == 0 {
		return text
	}
	by := number(ratio)
	if better := ratio > 1; better != m.LessIsBetter && by != number(1) {
		by = "**" + by + "**"
	}
	return fmt.Sprintf("%s (%s)", text, by)
}

// number has three digits that count, and a comma for thousands.
func number(x float64) string {
	if x < 1000 {
		digits := 2
		if x > 0 {
			digits = max(2-int(math.Floor(math.Log10(x))), 0)
		}
		return fmt.Sprintf("%.*f", min(digits, 2), x)
	}
	n := int(math.Round(x/100) * 100)
	if n >= 1_000_000 {
		return fmt.Sprintf("%d,%03d,%03d", n/1_000_000, n/1000%1000, n%1000)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// oneSync compares bare JetStream and one sync with Yardmaster.
func (r *Report) oneSync(b *strings.Builder) {
	fmt.Fprintf(b, "\n## One sync\n\nOne sync of this disk takes %s ms (p50) and %s ms (p99): write 4 KiB to a file, then fsync.\n",
		number(r.SyncMS.P50), number(r.SyncMS.P99))
	bare, own := r.setting("jetstream", "1s"), r.setting(Own, "always")
	if bare == nil || own == nil {
		return
	}
	lines := fmt.Sprintf("In W3 bare JetStream that syncs every second takes %s ms from submit to handler (p50). "+
		"With one sync that is %s ms; Yardmaster, which syncs before the answer, takes %s ms.",
		number(bare.Median["w3_p50_ms"]), number(bare.Median["w3_p50_ms"]+r.SyncMS.P50), number(own.Median["w3_p50_ms"]))
	fmt.Fprintf(b, "%s", wrap(lines, ""))
}

// circumstances are the machine, the versions and the settings.
func (r *Report) circumstances(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Machine, versions and settings\n\n")
	item := func(format string, args ...any) { b.WriteString(wrap("- "+fmt.Sprintf(format, args...), "  ")) }
	item("Measured on %s: %s, %d cores, %d GB, %s, %s.", r.At.Format("2006-01-02"),
		cmp.Or(r.Machine.CPU, "unknown processor"), r.Machine.Cores, r.Machine.MemoryGB, r.Machine.Kernel, r.Machine.Go)
	item("Other programs used %.2f cores meanwhile.", r.OtherCores)
	item("Command: `%s`.", r.Command)
	for i, s := range r.Settings {
		if !slices.ContainsFunc(r.Settings[:i], func(before Setting) bool { return before.System == s.System }) {
			item("%s: %s; %s.", s.System, s.Version, s.Settings)
		}
		if n := s.Median["duplicates"]; n > 0 {
			item("%s, sync %s: %.0f tasks of a run were handled more than once.", s.System, s.Sync, n)
		}
	}
	for _, line := range r.Skipped {
		item("Left out: %s.", line)
	}
	for _, line := range r.Failures {
		item("Failed: %s.", line)
	}
}

// wrap breaks text into lines that are short enough; all but the first begin with indent.
func wrap(text, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case column+1+n > columnsMax:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}
