package demo

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// model is one frame of the live view: plain values, so that a frame can be
// tested.
type model struct {
	// phase is what goes on, such as "sending".
	phase string
	// elapsed and of tell how long the phase has lasted and may last; of is 0
	// where no one knows.
	elapsed, of time.Duration
	// looked is how many tasks were looked up, in the last phase.
	looked    int
	submitted throughput
	finished  throughput
	tenants   []tenantRow
	waits     []waitRow
	limit     limitRow
	bank      bankStats
	// elsewhere is a command for another terminal.
	elsewhere string
}

type throughput struct {
	total     int
	perSecond float64
	history   []float64 // per second, oldest first
}

// tenantRow is one tenant: what it counted itself, and how the engine sees its tasklist.
type tenantRow struct {
	name     string
	counts   counts
	tasklist *yardv1.DescribeTasklistResponse
	stale    bool // the engine has not answered recently
}

// waitRow tells how long tasks of a type waited from submit to start.
type waitRow struct {
	label              string
	count              int
	p50, p95, p99, max time.Duration
}

type limitRow struct {
	name         string
	inUse, limit int
	most         int // handlers at once, ever
}

// frame renders a model for a terminal: at most height lines of at most width
// characters. The rest is cut off at the bottom and at the right.
func frame(m model, width, height int) []viewLine {
	var f frameWriter
	f.heading("%s", header(m, width))
	f.line("")
	f.throughput("submitted", m.submitted, width)
	f.throughput("finished", m.finished, width)
	f.line("")
	f.tenants(m.tenants)
	f.line("")
	f.waits(m.waits)
	f.line("")
	f.limit(m.limit)
	f.bank(m.bank)
	f.line("")
	f.line(" %-10s %s", "try", m.elsewhere)
	return f.fit(width, height)
}

// viewLine is one line of the view.
type viewLine struct {
	text    string
	heading bool
}

type frameWriter struct{ lines []viewLine }

func (f *frameWriter) line(format string, args ...any) {
	f.lines = append(f.lines, viewLine{text: strings.TrimRight(fmt.Sprintf(format, args...), " ")})
}

func (f *frameWriter) heading(format string, args ...any) {
	f.line(format, args...)
	f.lines[len(f.lines)-1].heading = true
}

func (f *frameWriter) fit(width, height int) []viewLine {
	lines := f.lines[:min(len(f.lines), max(height, 0))]
	for i := range lines {
		lines[i].text = clip(lines[i].text, width)
	}
	return lines
}

// header has the title on the left and the phase on the right.
func header(m model, width int) string {
	left := " Yardmaster demo: three tenants, one engine"
	right := activity(m) + " "
	gap := width - utf8.RuneCountInString(left) - utf8.RuneCountInString(right)
	return left + strings.Repeat(" ", max(gap, 2)) + right
}

// activity says what goes on, and how far it is.
func activity(m model) string {
	switch {
	case m.looked > 0:
		return fmt.Sprintf("%s %s of %s", m.phase, whole(m.looked), whole(m.submitted.total))
	case m.of > 0:
		return fmt.Sprintf("%s %s of %s", m.phase, clock(m.elapsed), clock(m.of))
	default:
		return fmt.Sprintf("%s %s", m.phase, clock(m.elapsed))
	}
}

func (f *frameWriter) throughput(label string, t throughput, width int) {
	numbers := fmt.Sprintf(" %-10s %6s/s  %9s in all  ", label, whole(int(t.perSecond+0.5)), whole(t.total))
	f.line("%s%s", numbers, sparkline(t.history, min(width-utf8.RuneCountInString(numbers)-1, meterHistory)))
}

func (f *frameWriter) tenants(rows []tenantRow) {
	f.heading(" %-8s %9s %7s %7s %7s %8s %6s %7s %6s %5s", "tenant", "submitted",
		"ready", "running", "waiting", "done", "failed", "retried", "cancel", "dead")
	for _, r := range rows {
		c, l := r.counts, r.tasklist
		ready := whole(int(l.Ready))
		if l.UnreadBatches > 0 {
			ready += "+" // and more on disk
		}
		note := ""
		if r.stale {
			note = " ?"
		}
		f.line(" %-8s %9s %7s %7s %7s %8s %6s %7s %6s %5s%s", r.name, whole(c.accepted),
			ready, whole(int(l.Running)), whole(int(l.Waiting+l.Backoff)),
			whole(c.succeeded), whole(c.failed), whole(c.retried), whole(c.cancelled), whole(c.givenUp), note)
	}
}

func (f *frameWriter) waits(rows []waitRow) {
	f.heading(" %-29s %8s %9s %9s %9s %9s", "submit → start, if not delayed", "tasks", "p50", "p95", "p99", "max")
	for _, r := range rows {
		f.line(" %-29s %8s %9s %9s %9s %9s", r.label, whole(r.count), short(r.p50), short(r.p95), short(r.p99), short(r.max))
	}
}

func (f *frameWriter) limit(l limitRow) {
	inUse := min(max(l.inUse, 0), l.limit)
	bar := strings.Repeat("■", inUse) + strings.Repeat("□", l.limit-inUse)
	f.line(" %-10s %s %s %d of %d slots in use, at most %d at once so far", "limit", l.name, bar, l.inUse, l.limit, l.most)
}

func (f *frameWriter) bank(b bankStats) {
	f.line(" %-10s %s calls, %d in flight, most %d; %s busy, %s lost, %s closed accounts", "bank",
		whole(b.Calls), b.InFlight, b.InFlightMax, whole(b.Busy), whole(b.Dropped), whole(b.Refused))
	f.line(" %-10s %s transfers, %s repeats recognised, %d paid twice", "", whole(b.Paid), whole(b.Repeats), b.PaidTwice)
}

// sparkline draws the last values, one character each, against their maximum.
func sparkline(values []float64, width int) string {
	if width <= 0 {
		return ""
	}
	values = values[max(len(values)-width, 0):]
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	out := make([]rune, len(values))
	for i, v := range values {
		level := 0
		if top > 0 {
			level = int(max(v, 0) / top * float64(len(levels)-1))
		}
		out[i] = levels[level]
	}
	return string(out)
}
