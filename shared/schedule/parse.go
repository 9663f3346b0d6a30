package schedule

import (
	"regexp"
	"time"
	_ "time/tzdata" // zones also for machines without zone files; about 450 KB

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// The limits of a schedule, as yard.v1.Schedule says.
const (
	cronMax        = 16
	excludeDateMax = 400
	everyMinMs     = 1000
	yearMs         = 366 * dayMs
	dayMs          = 24 * 60 * 60 * 1000
	runsMax        = 1_000_000_000
	noteBytesMax   = 1024
	// timeMaxMs is the last ms of the year 9999, the last one that RFC 3339 can write.
	timeMaxMs = 253_402_300_799_999
)

// firstDay is where the search begins that proves that a schedule without a start has times.
var firstDay = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// Times are the times of a schedule. They never change.
type Times struct {
	crons    []expression
	excluded []expression
	// dates are the days without runs, by day; those of each year have the year 0.
	dates map[date]bool
	zone  *time.Location
	// everyMs is 0 if there is none.
	everyMs, startMs, jitterMs int64
	// endMs is the end of all time if the schedule has none.
	endMs int64
}

// date is a day of the calendar; the year is 0 if it is a day of each year.
type date struct {
	year  int
	month time.Month
	day   int
}

// Parse checks all fields of s but name and task, and returns its times.
func Parse(s *yardv1.Schedule) (*Times, error) {
	if err := checkNumbers(s); err != nil {
		return nil, err
	}
	t := &Times{everyMs: s.GetEveryMs(), startMs: s.GetStartAtMs(), endMs: s.GetEndAtMs(), jitterMs: s.GetJitterMs(), dates: map[date]bool{}}
	if t.endMs == 0 {
		t.endMs = timeMaxMs
	}
	var err error
	if t.zone, err = loadZone(s.GetTimeZone()); err != nil {
		return nil, err
	}
	if t.crons, err = expressions("/cron", s.GetCron()); err != nil {
		return nil, err
	}
	if t.excluded, err = expressions("/exclude_cron", s.GetExcludeCron()); err != nil {
		return nil, err
	}
	for i := range t.excluded {
		t.excluded[i].coverMinutes()
	}
	if err := t.addDates(s.GetExcludeDates()); err != nil {
		return nil, err
	}
	if len(t.crons) == 0 && t.everyMs == 0 {
		return nil, invalid("/cron", "is empty, and so is every_ms: a schedule has one of them, or both")
	}
	if from := t.searchStart(); !t.hasTimeAfter(from) {
		return nil, invalid("", "has no time in the 10 years from %s: its times, or too many in a row, are excluded or not between start_at_ms and end_at_ms", from.Format(time.DateOnly))
	}
	return t, nil
}

// searchStart is where the search for a first time begins: at the start, or ten years before the end.
func (t *Times) searchStart() time.Time {
	switch {
	case t.startMs != 0:
		return time.UnixMilli(t.startMs).UTC()
	case t.endMs != timeMaxMs:
		return time.UnixMilli(t.endMs).UTC().AddDate(-yearsMax, 0, 0)
	}
	return firstDay
}

func (t *Times) hasTimeAfter(from time.Time) bool {
	_, ok := t.Next(from.Add(-time.Millisecond))
	return ok
}

func (t *Times) addDates(texts []string) error {
	if len(texts) > excludeDateMax {
		return invalid("/exclude_dates", "has %d dates, at most %d are allowed", len(texts), excludeDateMax)
	}
	for i, text := range texts {
		at, err := time.Parse(time.DateOnly, text)
		d := date{at.Year(), at.Month(), at.Day()}
		if err != nil {
			at, err = time.Parse("01-02", text)
			d = date{0, at.Month(), at.Day()}
		}
		if err != nil {
			return invalid(element("/exclude_dates", i), "%.80q is no date such as 2026-12-24, or 12-24 for each year", text)
		}
		t.dates[d] = true
	}
	return nil
}

// machineZone is a zone that depends on the machine, or whose clock counts leap seconds.
var machineZone = regexp.MustCompile(`^(Local|localtime|posixrules|right/.*|posix/.*)$`)

// loadZone refuses zones that are not the same on each machine.
func loadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || machineZone.MatchString(name) {
		return nil, invalid("/time_zone", "%.80q is no IANA time zone such as Europe/Berlin", name)
	}
	return zone, nil
}

func checkNumbers(s *yardv1.Schedule) error {
	for _, f := range []struct {
		path           string
		value          int64
		least, largest int64
	}{
		{"/every_ms", s.GetEveryMs(), everyMinMs, yearMs},
		{"/jitter_ms", s.GetJitterMs(), 0, dayMs},
		{"/start_at_ms", s.GetStartAtMs(), 0, timeMaxMs},
		{"/end_at_ms", s.GetEndAtMs(), 0, timeMaxMs},
		{"/runs_max", s.GetRunsMax(), 1, runsMax},
		{"/catch_up_ms", s.GetCatchUpMs(), 0, yearMs},
	} {
		if f.value != 0 && (f.value < f.least || f.value > f.largest) {
			return invalid(f.path, "is %d, allowed are %d to %d", f.value, f.least, f.largest)
		}
	}
	switch {
	case s.GetEndAtMs() != 0 && s.GetEndAtMs() <= s.GetStartAtMs():
		return invalid("/end_at_ms", "is not after start_at_ms")
	case yardv1.Overlap_name[int32(s.GetOverlap())] == "":
		return invalid("/overlap", "has the unknown value %d", s.GetOverlap())
	case yardv1.Missed_name[int32(s.GetMissed())] == "":
		return invalid("/missed", "has the unknown value %d", s.GetMissed())
	case len(s.GetNote()) > noteBytesMax:
		return invalid("/note", "is %d bytes long, at most %d are allowed", len(s.GetNote()), noteBytesMax)
	}
	return nil
}

func invalid(path, format string, args ...any) error {
	return fault.At(fault.InvalidArgument, path, format, args...)
}
