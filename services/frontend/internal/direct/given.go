package direct

import (
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
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

// Releases are the events that hand attempts of a domain back.
func Releases(domain string, attempts []Attempt) []validate.Outcome {
	all := make([]validate.Outcome, len(attempts))
	for i, a := range attempts {
		all[i] = validate.Outcome{ID: a.ID, Event: &logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_RELEASED, TaskId: a.ID[:], Domain: domain,
			Position: uint64(a.Token.Position), Version: a.Token.Version, Nonce: a.Token.Nonce, Message: "the poller went away",
		}}
	}
	return all
}

// Given remembers what was given to which inbox, for as long as it may turn out that no one received it. It is safe for concurrent use.
type Given struct {
	mu   sync.Mutex
	last uint64
	// order has the oldest first; some of them are not remembered any more.
	order   []*answer
	byID    map[uint64]*answer
	byInbox map[inbox]*answer
}

type inbox struct{ domain, name string }

type answer struct {
	id       uint64
	at       inbox
	since    time.Time
	attempts []Attempt
}

// Add remembers an answer to an inbox of a domain, and returns its id.
func (g *Given) Add(domain, to string, attempts []Attempt, now time.Time) (id uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byID == nil {
		g.byID, g.byInbox = map[uint64]*answer{}, map[inbox]*answer{}
	}
	for len(g.order) > 0 && (len(g.order) >= rememberMax || now.Sub(g.order[0].since) >= rememberFor) {
		g.forget(g.order[0])
		g.order = g.order[1:]
	}
	g.last++
	a := &answer{g.last, inbox{domain, to}, now, attempts}
	g.order, g.byID[a.id], g.byInbox[a.at] = append(g.order, a), a, a
	return a.id
}

func (g *Given) forget(a *answer) {
	delete(g.byID, a.id)
	if g.byInbox[a.at] == a {
		delete(g.byInbox, a.at)
	}
}

// Bounced takes out the attempts of an answer that reached no one.
func (g *Given) Bounced(id uint64) (domain string, attempts []Attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.take(g.byID[id])
}

// Lost takes out those of the answer to an inbox whose owner has not received it.
func (g *Given) Lost(domain, to string) []Attempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, attempts := g.take(g.byInbox[inbox{domain, to}])
	return attempts
}

func (g *Given) take(a *answer) (domain string, attempts []Attempt) {
	if a == nil {
		return "", nil
	}
	g.forget(a)
	return a.at.domain, a.attempts
}
