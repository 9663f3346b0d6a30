package schedule

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// cronBytesMax bounds one expression. All lists written out in full take about 600 bytes.
const cronBytesMax = 1024

const (
	minuteSeconds = 60
	hourSeconds   = 60 * minuteSeconds
	daySeconds    = 24 * hourSeconds
)

// The bits of whole fields, and the bit that the parser sets if a field has a star.
const (
	allOf60 = 1<<60 - 1
	allOf24 = 1<<24 - 1
	starBit = 1 << 63
)

var (
	cronParser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	// partPattern is one part of a list: a star, a value or a range, and a step.
	partPattern = regexp.MustCompile(`^(\*|[0-9A-Za-z]+)(?:-([0-9A-Za-z]+))?(?:/(0*[1-9][0-9]*))?$`)
	// foreignPattern is what only other crons know: the last day, a weekday near a day, the nth weekday.
	foreignPattern = regexp.MustCompile(`(?i)^(\?.*|.*#.*|L(-[0-9]+)?|L?W|[0-9]+W|([0-9]|sun|mon|tue|wed|thu|fri|sat)L)$`)
	weekdays       = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// expression is one cron expression: bits by field.
type expression struct {
	seconds, minutes, hours, days, months, weekdays uint64
	// everyHour says that the hour is `*` or `*/n`: it follows the clock.
	everyHour bool
	// noSeconds says that the text had no field of seconds.
	noSeconds bool
}

func expressions(path string, texts []string) ([]expression, error) {
	if len(texts) > cronMax {
		return nil, invalid(path, "has %d expressions, at most %d are allowed", len(texts), cronMax)
	}
	all := make([]expression, 0, len(texts))
	for i, text := range texts {
		e, err := parseCron(text)
		if err != nil {
			return nil, invalid(element(path, i), "%.80q %v", text, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func element(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// parseCron reads one expression. An error completes the sentence that begins with the text.
func parseCron(text string) (expression, error) {
	fields := strings.Fields(text)
	switch {
	case len(text) > cronBytesMax:
		return expression{}, fmt.Errorf("is %d bytes long, at most %d are allowed", len(text), cronBytesMax)
	case len(fields) == 0:
		return expression{}, fmt.Errorf("has no fields")
	case fields[0] == "@every":
		return expression{}, fmt.Errorf("is no cron expression: use every_ms")
	case strings.HasPrefix(fields[0], "TZ=") || strings.HasPrefix(fields[0], "CRON_TZ="):
		return expression{}, fmt.Errorf("has a time zone: use time_zone")
	}
	everyHour := fields[0] == "@hourly"
	named := strings.HasPrefix(fields[0], "@")
	if !named {
		if len(fields) != 5 && len(fields) != 6 {
			return expression{}, fmt.Errorf("has %d fields, and 5 or 6 are allowed", len(fields))
		}
		if err := checkFields(fields); err != nil {
			return expression{}, err
		}
		everyHour = strings.HasPrefix(fields[len(fields)-4], "*")
		last := len(fields) - 1
		fields[last] = sundays(fields[last])
	}
	parsed, err := cronParser.Parse(strings.Join(fields, " "))
	if err != nil {
		return expression{}, fmt.Errorf("is no cron expression: %w", err)
	}
	s, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return expression{}, fmt.Errorf("is no cron expression")
	}
	e := expression{
		seconds: s.Second, minutes: s.Minute, hours: s.Hour, days: s.Dom, months: s.Month, weekdays: s.Dow,
		everyHour: everyHour, noSeconds: named || len(fields) == 5,
	}
	if !e.hasDay() {
		return expression{}, fmt.Errorf("has no time: no month that it names has such a day")
	}
	return e, nil
}

// checkFields refuses whatever the parser would read as something else, such as an empty part of a list.
func checkFields(fields []string) error {
	for _, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			m := partPattern.FindStringSubmatch(part)
			switch {
			case foreignPattern.MatchString(part):
				return fmt.Errorf("has %q: L, W, # and ? are not supported", part)
			case m == nil || m[1] == "*" && m[2] != "":
				return fmt.Errorf("has %q: a part of a list is *, a value or a range, and may have a step of 1 or more", part)
			}
		}
	}
	return nil
}

// sundays rewrites the days of the week that the parser does not know: 7, and ranges that end on Sunday.
func sundays(field string) string {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		parts[i] = sunday(part)
	}
	return strings.Join(parts, ",")
}

func sunday(part string) string {
	m := partPattern.FindStringSubmatch(strings.ToLower(part))
	if m[1] == "7" && m[2] == "" && m[3] == "" {
		return "0"
	}
	first := slices.Index(weekdays, m[1])
	if n, err := strconv.Atoi(m[1]); err == nil {
		first = n
	}
	endsOnSunday := m[2] == "7" || m[2] == weekdays[0] && first != 0
	if !endsOnSunday || first < 0 || first > 7 {
		return part
	}
	step, err := strconv.Atoi(m[3])
	if err != nil {
		step = 1
	}
	var days []string
	for day := first; day <= 7; day += min(step, 7) {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}

// hasDay reports whether any date matches.
func (e *expression) hasDay() bool {
	if e.weekdays&starBit == 0 {
		return true
	}
	for month := time.January; month <= time.December; month++ {
		lastDay := time.Date(2024, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
		if has(e.months, int(month)) && bits.TrailingZeros64(e.days) <= lastDay {
			return true
		}
	}
	return false
}

// coverMinutes makes an expression without seconds match all seconds of its minutes.
func (e *expression) coverMinutes() {
	if e.noSeconds {
		e.seconds = allOf60
	}
}

// onDay reports whether the expression matches a date.
func (e *expression) onDay(d date, weekday time.Weekday) bool {
	if !has(e.months, int(d.month)) {
		return false
	}
	day, dayOfWeek := has(e.days, d.day), has(e.weekdays, int(weekday))
	if e.days&starBit != 0 || e.weekdays&starBit != 0 {
		return day && dayOfWeek
	}
	return day || dayOfWeek
}

// from returns the first local time at or after c, and not after last, that the expression matches. Local times are seconds,
// counted as if the zone were UTC.
func (e *expression) from(c, last int64) (int64, bool) {
	day := floorDiv(c, daySeconds)
	second := c - day*daySeconds
	for day*daySeconds <= last {
		at := time.Unix(day*daySeconds, 0).UTC()
		d := dateOf(at)
		if !has(e.months, int(d.month)) {
			day, second = time.Date(d.year, d.month+1, 1, 0, 0, 0, 0, time.UTC).Unix()/daySeconds, 0
			continue
		}
		if e.onDay(d, at.Weekday()) {
			if found, ok := e.inDay(second); ok {
				return day*daySeconds + found, day*daySeconds+found <= last
			}
		}
		day, second = day+1, 0
	}
	return 0, false
}

// inDay returns the first second of a day at or after second that the expression matches.
func (e *expression) inDay(second int64) (int64, bool) {
	hour, minute, sec := int(second/hourSeconds), int(second/minuteSeconds%60), int(second%60)
	h, ok := nextBit(e.hours, hour)
	if ok && h == hour {
		m, found := nextBit(e.minutes, minute)
		if found && m == minute {
			if s, found := nextBit(e.seconds, sec); found {
				return clock(h, m, s), true
			}
			m, found = nextBit(e.minutes, minute+1)
		}
		if found {
			return clock(h, m, bits.TrailingZeros64(e.seconds)), true
		}
		h, ok = nextBit(e.hours, hour+1)
	}
	return clock(h, bits.TrailingZeros64(e.minutes), bits.TrailingZeros64(e.seconds)), ok
}

// covers returns how many seconds from a local time on the expression matches at least: to the end of the second,
// minute, hour or day. It is 0 if the expression does not match.
func (e *expression) covers(d date, weekday time.Weekday, second int64) int64 {
	if !e.onDay(d, weekday) || !has(e.hours, int(second/hourSeconds)) || !has(e.minutes, int(second/minuteSeconds%60)) || !has(e.seconds, int(second%60)) {
		return 0
	}
	stretch := int64(1)
	if e.seconds&allOf60 == allOf60 {
		stretch = minuteSeconds
		if e.minutes&allOf60 == allOf60 {
			stretch = hourSeconds
			if e.hours&allOf24 == allOf24 {
				stretch = daySeconds
			}
		}
	}
	return stretch - second%stretch
}

func clock(hour, minute, second int) int64 {
	return int64(hour)*hourSeconds + int64(minute)*minuteSeconds + int64(second)
}

func has(set uint64, n int) bool { return set>>n&1 != 0 }

// nextBit returns the first number at or after n in the set; the star bit is none.
func nextBit(set uint64, n int) (int, bool) {
	next := bits.TrailingZeros64(set &^ starBit >> n << n)
	return next, next < 64
}

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return (a+1)/b - 1
	}
	return a / b
}

func dateOf(at time.Time) date {
	year, month, day := at.Date()
	return date{year, month, day}
}
