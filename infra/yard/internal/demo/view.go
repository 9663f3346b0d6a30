package demo

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/screen"
)

// model is one frame of the live view: plain values, so that a frame can be
// tested.
type model struct {
	// phase is what goes on, such as "sending".
	phase string
	// elapsed and of are how long the phase has lasted and may last; of is 0
	// where it is not known.
	elapsed, of time.Duration
	// lookups is how many tasks were found finished, in the last phase.
	lookups   int
	submitted meter
	finished  meter
	tenants   []tenantRow
	waits     []waitReport
	limit     limitRow
	bank      bankStats
	// elsewhere is a command for another terminal.
	elsewhere string
}

const (
	// meterHistory is how many seconds a meter remembers.
	meterHistory = 120
	// meterSmooth is how many seconds the current rate is an average of.
	meterSmooth = 2
)

// meter makes rates of a sum that grows. It is not safe for concurrent use.
type meter struct {
	total   int
	since   time.Time // when the current second began
	before  int       // the sum then
	seconds []float64 // growth in each second, oldest first
}

// observe takes the sum at an instant, a few times a second. Instants must not go back.
func (m *meter) observe(now time.Time, total int) {
	m.total = total
	if m.since.IsZero() {
		m.since, m.before = now, total
	}
	if took := now.Sub(m.since); took >= time.Second {
		m.seconds = append(m.seconds, float64(total-m.before)/took.Seconds())
		m.seconds = m.seconds[max(len(m.seconds)-meterHistory, 0):]
		m.since, m.before = now, total
	}
}

// rate is the current growth per second, 0 in the first second.
func (m *meter) rate() float64 {
	recent := m.seconds[max(len(m.seconds)-meterSmooth, 0):]
	sum := 0.0
	for _, grown := range recent {
		sum += grown
	}
	return sum / float64(max(len(recent), 1))
}

// tenantRow is one tenant: what it counted itself, and how the engine sees its tasklist.
type tenantRow struct {
	name     string
	counts   counts
	tasklist *yardv1.DescribeTasklistResponse
	stale    bool // the engine has not answered recently
}

type limitRow struct {
	name         string
	inUse, limit int
	most         int // handlers at once, ever
}

// frame renders a model for a terminal: at most height lines of at most width
// characters. The rest is cut off at the bottom and at the right.
func frame(m model, width, height int) []screen.Line {
	var f frameWriter
	f.heading("%s", header(m, width))
	f.line("")
	f.showThroughput("submitted", m.submitted, width)
	f.showThroughput("finished", m.finished, width)
	f.line("")
	f.showTenants(m.tenants)
	f.line("")
	f.showWaits(m.waits)
	f.line("")
	f.showLimit(m.limit)
	f.showBank(m.bank)
	f.line("")
	f.line(" %-10s %s", "try", m.elsewhere)
	return screen.Fit(f.lines, width, height)
}

type frameWriter struct{ lines []screen.Line }

func (f *frameWriter) line(format string, args ...any) {
	f.lines = append(f.lines, screen.Line{Text: strings.TrimRight(fmt.Sprintf(format, args...), " ")})
}

func (f *frameWriter) heading(format string, args ...any) {
	f.line(format, args...)
	f.lines[len(f.lines)-1].Heading = true
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
	case m.lookups > 0:
		return fmt.Sprintf("%s %s of %s", m.phase, whole(m.lookups), whole(m.submitted.total))
	case m.of > 0:
		return fmt.Sprintf("%s %s of %s", m.phase, clock(m.elapsed), clock(m.of))
	default:
		return fmt.Sprintf("%s %s", m.phase, clock(m.elapsed))
	}
}

func (f *frameWriter) showThroughput(label string, m meter, width int) {
	numbers := fmt.Sprintf(" %-10s %6s/s  %9s in all  ", label, whole(int(m.rate()+0.5)), whole(m.total))
	f.line("%s%s", numbers, sparkline(m.seconds, min(width-utf8.RuneCountInString(numbers)-1, meterHistory)))
}

func (f *frameWriter) showTenants(rows []tenantRow) {
	f.heading(" %-8s %9s %7s %7s %7s %8s %6s %7s %6s %5s", "tenant", "submitted",
		"ready", "running", "waiting", "done", "failed", "retried", "cancel", "dead")
	for _, r := range rows {
		c, l := r.counts, r.tasklist
		ready := whole(int(l.GetReady()))
		if l.GetUnreadBatches() > 0 {
			ready += "+" // and more on disk
		}
		note := ""
		if r.stale {
			note = " ?"
		}
		f.line(" %-8s %9s %7s %7s %7s %8s %6s %7s %6s %5s%s", r.name, whole(c.accepted),
			ready, whole(int(l.GetRunning())), whole(int(l.GetWaiting()+l.GetBackoff())),
			whole(c.succeeded), whole(c.failed), whole(c.retried), whole(c.cancelled), whole(c.givenUp), note)
	}
}

func (f *frameWriter) showWaits(rows []waitReport) {
	f.heading(" %-29s %8s %9s %9s %9s %9s", "submit → start, if not delayed", "tasks", "p50", "p95", "p99", "max")
	for _, r := range rows {
		f.line(" %-29s %8s %9s %9s %9s %9s", r.Type, whole(r.Tasks), short(r.P50), short(r.P95), short(r.P99), short(r.Max))
	}
}

func (f *frameWriter) showLimit(l limitRow) {
	inUse := min(max(l.inUse, 0), l.limit)
	bar := strings.Repeat("■", inUse) + strings.Repeat("□", l.limit-inUse)
	f.line(" %-10s %s %s %d of %d slots in use, at most %d at once so far", "limit", l.name, bar, l.inUse, l.limit, l.most)
}

func (f *frameWriter) showBank(b bankStats) {
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

// progress is the model in one line.
func progress(m model) string {
	var ready, running, waiting int64
	failed, dead := 0, 0
	for _, t := range m.tenants {
		ready += t.tasklist.GetReady()
		running += t.tasklist.GetRunning()
		waiting += t.tasklist.GetWaiting() + t.tasklist.GetBackoff()
		failed += t.counts.failed
		dead += t.counts.givenUp
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s submitted (%.0f/s), %s finished (%.0f/s)", activity(m),
		whole(m.submitted.total), m.submitted.rate(), whole(m.finished.total), m.finished.rate())
	fmt.Fprintf(&s, "; %d ready, %d running, %d waiting; %s attempts failed, %s tasks dead; slots %d/%d\n",
		ready, running, waiting, whole(failed), whole(dead), m.limit.inUse, m.limit.limit)
	return s.String()
}

// whole writes a number with commas between thousands.
func whole(n int) string { return humanize.Comma(int64(n)) }

// short writes milliseconds with three digits or so.
func short(ms float64) string {
	switch {
	case ms <= 0:
		return "–"
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
}

// clock writes a duration as minutes and seconds.
func clock(d time.Duration) string {
	seconds := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}
