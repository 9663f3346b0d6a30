// Package lost remembers the inboxes of polls that were given up without an answer, until the engine knows of them.
//
// Owns: which inboxes the next poll of a tasklist names, and for how long. An answer may be lost with a server, and its tasks would wait for their
// deadline. Never does: poll. On failure: of too many inboxes the oldest are forgotten.
package lost

import (
	"slices"
	"sync"
	"time"
)

// Max is how many inboxes of a tasklist are remembered: what one poll may name.
const Max = 16

// namedFor is for how long one is named after the first poll that was answered and named it: a matching process that was connected again later than
// the others has missed it, and knows for as long what it sent.
const namedFor = 10 * time.Second

// Inboxes are those of a client, by tasklist. They are safe for concurrent use.
type Inboxes struct {
	mu  sync.Mutex
	all map[string][]inbox
}

// inbox is named until a time; zero: until a poll is answered that names it, and then for namedFor.
type inbox struct {
	name  string
	until time.Time
}

// New makes none.
func New() *Inboxes { return &Inboxes{all: map[string][]inbox{}} }

// Add notes one of a tasklist.
func (x *Inboxes) Add(tasklist, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := append(x.all[tasklist], inbox{name: name})
	x.all[tasklist] = all[max(0, len(all)-Max):]
}

// Names are those that a poll of a tasklist is to name.
func (x *Inboxes) Names(tasklist string) (names []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.all[tasklist]
	if len(all) == 0 {
		return nil
	}
	left := slices.DeleteFunc(all, func(one inbox) bool { return !one.until.IsZero() && !time.Now().Before(one.until) })
	if x.all[tasklist] = left; len(left) == 0 {
		delete(x.all, tasklist)
	}
	for _, one := range left {
		names = append(names, one.name)
	}
	return names
}

// Answered notes that a poll was answered that named some.
func (x *Inboxes) Answered(tasklist string, named []string) {
	if len(named) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.all[tasklist] {
		if one := &x.all[tasklist][i]; one.until.IsZero() && slices.Contains(named, one.name) {
			one.until = time.Now().Add(namedFor)
		}
	}
}
