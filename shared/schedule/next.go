package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"
)

const (
	// yearsMax is how far ahead the next time is searched for.
	yearsMax = 10
	// stepsMax bounds the excluded stretches that one search passes.
	stepsMax = 1000
)

// Next returns the first time of the calendar after an instant. If there is none within 10 years, it returns the zero time and
// false. A search ends after 1,000 excluded stretches: then Next returns the instant that it has reached, and false.
func (t *Times) Next(after time.Time) (time.Time, bool) {
	afterMs := after.UnixMilli()
	lastMs := min(after.AddDate(yearsMax, 0, 0).UnixMilli(), t.endMs-1)
	if t.startMs != 0 {
		afterMs = max(afterMs, t.startMs-1)
	}
	searched := slices.Repeat([]int64{math.MinInt64}, len(t.crons))
	for range stepsMax {
		ms, ok := t.nextOf(afterMs, lastMs, searched)
		if !ok {
			return time.Time{}, false
		}
		end := t.exclusionEnd(ms)
		if end == 0 {
			return time.UnixMilli(ms).In(t.zone), true
		}
		afterMs = end - 1
	}
	return time.UnixMilli(afterMs), false
}

// Jitter returns how much later the run of a time is: always the same for the same domain, name and time.
func (t *Times) Jitter(domain, name string, at time.Time) time.Duration {
	if t.jitterMs == 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(domain + "/" + name + "/" + strconv.FormatInt(at.UnixMilli(), 10)))
	ms := binary.BigEndian.Uint64(sum[:]) % uint64(t.jitterMs+1)
	return time.Duration(ms) * time.Millisecond
}

// nextOf returns the first time after an instant and not after last, whatever is excluded. Searched has for each expression the second
// up to which this search knows that nothing matches, so that a rare expression is searched once.
func (t *Times) nextOf(afterMs, lastMs int64, searched []int64) (int64, bool) {
	next := lastMs + 1
	if t.everyMs != 0 {
		next = min(next, t.startMs+(floorDiv(afterMs-t.startMs, t.everyMs)+1)*t.everyMs)
	}
	after, last := floorDiv(afterMs, 1000), floorDiv(min(next, lastMs), 1000)
	for i := range t.crons {
		e := &t.crons[i]
		search := e.nextFixed
		if e.everyHour {
			search = e.nextByClock
		}
		searched[i] = max(searched[i], after)
		if at, ok := search(searched[i], last, t.zone); ok {
			next = min(next, at*1000)
			last = min(last, at)
			searched[i] = at - 1
		} else {
			searched[i] = max(searched[i], last)
		}
	}
	return next, next <= lastMs
}

// nextByClock returns the first instant after an instant whose local time matches, and which is not after last.
func (e *expression) nextByClock(after, last int64, zone *time.Location) (int64, bool) {
	for from := after + 1; from <= last; {
		p := periodOf(from, zone)
		if c, ok := e.from(from+p.offset, min(last, p.end-1)+p.offset); ok {
			return c - p.offset, true
		}
		from = p.end
	}
	return 0, false
}

// nextFixed returns the first instant after an instant of a local time that matches, and which is not after last. The instant
// of a local time never decreases with it, so the first one that is late enough is found from the present local time on.
func (e *expression) nextFixed(after, last int64, zone *time.Location) (int64, bool) {
	p := periodOf(after, zone)
	from := after + p.offset + 1
	for {
		c, ok := e.from(from, last+daySeconds)
		if !ok {
			return 0, false
		}
		at := instant(c, zone)
		if at > after {
			return at, at <= last
		}
		// The local time came twice, and this is the second time: the next one that counts is at the end of what is repeated.
		from = max(c+1, p.start+periodOf(p.start-1, zone).offset)
	}
}

// instant returns the instant of a local time: the first one if there are two, and the moment of the change if there is none.
func instant(c int64, zone *time.Location) int64 {
	for p := periodOf(c-daySeconds, zone); ; p = periodOf(p.end, zone) {
		if at := c - p.offset; at < p.end {
			return max(at, p.start)
		}
	}
}

// period is a stretch of time, in Unix seconds, in which the clocks of a zone do not change. Neighbours may have the same offset.
type period struct{ offset, start, end int64 }

// periodOf returns the period of an instant.
func periodOf(at int64, zone *time.Location) period {
	t := time.Unix(at, 0).In(zone)
	_, offset := t.Zone()
	start, end := t.ZoneBounds()
	p := period{int64(offset), start.Unix(), end.Unix()}
	if start.IsZero() {
		p.start = math.MinInt64
	}
	switch {
	case end.IsZero():
		p.end = math.MaxInt64
	case p.end <= at:
		// For years beyond its tables the library ends each one after 365 days, and December 31 of a leap year after it has ended.
		p.end = time.Date(t.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return p
}

// exclusionEnd returns the end of the excluded stretch that an instant is in, or 0.
func (t *Times) exclusionEnd(ms int64) int64 {
	if len(t.dates) == 0 && len(t.excluded) == 0 {
		return 0
	}
	at := time.UnixMilli(ms).In(t.zone)
	d, weekday := dateOf(at), at.Weekday()
	second := clock(at.Hour(), at.Minute(), at.Second())
	covered := int64(0)
	if t.dates[d] || t.dates[date{0, d.month, d.day}] {
		covered = daySeconds - second
	}
	for i := range t.excluded {
		covered = max(covered, t.excluded[i].covers(d, weekday, second))
	}
	if covered == 0 {
		return 0
	}
	return min(at.Unix()+covered, periodOf(at.Unix(), t.zone).end) * 1000
}
