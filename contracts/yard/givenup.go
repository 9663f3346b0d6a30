package yard

import (
	"slices"
	"sync"
)

// givenUpMax is how many polls of a tasklist are remembered that were given up: what one poll may name.
const givenUpMax = 16

// givenUp are the inboxes of polls that were given up without an answer, by tasklist, until the engine knows: an
// answer may be lost with a server, and its tasks would wait for their deadline.
type givenUp struct {
	mu      sync.Mutex
	inboxes map[string][]string
}

func (g *givenUp) add(tasklist, inbox string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := append(g.inboxes[tasklist], inbox)
	g.inboxes[tasklist] = all[max(0, len(all)-givenUpMax):]
}

// of are those of a tasklist.
func (g *givenUp) of(tasklist string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.inboxes[tasklist])
}

// forget drops those named by a poll that was answered.
func (g *givenUp) forget(tasklist string, inboxes []string) {
	if len(inboxes) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	left := slices.DeleteFunc(g.inboxes[tasklist], func(inbox string) bool { return slices.Contains(inboxes, inbox) })
	if g.inboxes[tasklist] = left; len(left) == 0 {
		delete(g.inboxes, tasklist)
	}
}
