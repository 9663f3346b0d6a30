package match

import (
	"time"
)

// missing is when a tasklist reports to history that polls wait in vain: their triggers may have been lost. The zero value has nothing to report.
type missing struct {
	// at is when to report, again after wait; 0 = no poll waits in vain. full: a limit was full when that was set.
	at, wait time.Duration
	full     bool
}

// due reports whether history is to learn of it now. If limits are full a poll waits for a slot, most likely.
func (m *missing) due(now time.Duration, starves, full bool) bool {
	switch {
	case !starves:
		m.at = 0
	case m.at == 0, m.full && !full:
		if m.wait = hungryMin; full {
			m.wait = hungryMax
		}
		m.full, m.at = full, now+m.wait
	case now >= m.at:
		m.wait = min(2*m.wait, hungryMax)
		m.at = now + m.wait
		return true
	}
	return false
}

// starving reports whether a poll waits for which the table holds nothing that could be
// had: what it waits for may have been lost. full: it holds something, for which there is no slot, or some
// is read ahead, or on its way into the table.
func (l *list) starving() (starves, full bool) {
	if l.domain.Down {
		return l.queue.Len() > 0, false // whatever the table holds
	}
	for _, line := range l.queue.Lines() {
		p := line.First()
		if len(l.index.Candidates(p.Types, 0, 1, l.Short)) == 0 {
			return true, l.source.Putting() || l.HasAhead(p.Accepts) || l.index.Holds(p.Types)
		}
	}
	return false, false
}
