package poll

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

const (
	// rememberFor is for how long it may turn out that a poll's answer was not received, rememberMax how many answers are remembered.
	rememberFor = 10 * time.Second
	rememberMax = 32_768
)

// Attempt is one that a poll was given.
type Attempt struct {
	ID    ids.TaskID
	Token ids.Token
}

// given remembers what was given to which inbox, for as long as it may turn out that no one received it.
type given struct {
	last uint64
	// order has the oldest first; some of them are not remembered any more.
	order   []*answer
	byID    map[uint64]*answer
	byInbox map[inbox]*answer
}

type answer struct {
	id       uint64
	to       inbox
	since    time.Time
	attempts []Attempt
}

// add remembers an answer, whose id is then the last.
func (g *given) add(to inbox, attempts []Attempt, now time.Time) {
	if g.byID == nil {
		g.byID, g.byInbox = map[uint64]*answer{}, map[inbox]*answer{}
	}
	for len(g.order) > 0 && (len(g.order) >= rememberMax || now.Sub(g.order[0].since) >= rememberFor) {
		g.forget(g.order[0])
		g.order = g.order[1:]
	}
	g.last++
	a := &answer{g.last, to, now, attempts}
	g.order, g.byID[a.id], g.byInbox[to] = append(g.order, a), a, a
}

func (g *given) forget(a *answer) {
	delete(g.byID, a.id)
	if g.byInbox[a.to] == a {
		delete(g.byInbox, a.to)
	}
}

// bounced takes out the attempts of an answer that reached no one, and lost those of the answer to an inbox that has not received it.
func (g *given) bounced(id uint64) (domain string, attempts []Attempt) { return g.take(g.byID[id]) }

func (g *given) lost(to inbox) (domain string, attempts []Attempt) { return g.take(g.byInbox[to]) }

func (g *given) take(a *answer) (domain string, attempts []Attempt) {
	if a == nil {
		return "", nil
	}
	g.forget(a)
	return a.to.domain, a.attempts
}
