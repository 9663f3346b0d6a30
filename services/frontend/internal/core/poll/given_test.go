package poll

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

var began = time.UnixMilli(1_800_000_000_000)

// put remembers an answer, and returns its id.
func (g *given) put(domain, name string, attempts []Attempt, now time.Time) uint64 {
	g.add(inbox{domain, name}, attempts, now)
	return g.last
}

// taken takes out what an inbox was given that has lost it.
func (g *given) taken(domain, name string) []Attempt {
	_, attempts := g.lost(inbox{domain, name})
	return attempts
}

// some is an answer of one task.
func some() []Attempt { return []Attempt{{ID: ids.NewTaskID(began, 0, rand.Uint64())}} }

// TestGiven: an answer comes out once, by its id or by its inbox, and only for its domain.
func TestGiven(t *testing.T) {
	var g given
	if _, none := g.bounced(1); none != nil || g.taken("shop", "a") != nil {
		t.Error("something comes out before an answer goes in")
	}
	first, second := some(), some()
	id := g.put("shop", "a", first, began)
	g.put("shop", "b", second, began)
	if got := g.taken("other", "a"); got != nil {
		t.Errorf("another domain takes %v", got)
	}
	domain, got := g.bounced(id)
	if domain != "shop" || len(got) != 1 || got[0] != first[0] {
		t.Errorf("bounced: %v of %q", got, domain)
	}
	if _, again := g.bounced(id); again != nil || g.taken("shop", "a") != nil {
		t.Error("an answer comes out twice")
	}
	if got := g.taken("shop", "b"); len(got) != 1 || got[0] != second[0] {
		t.Errorf("lost: %v", got)
	}
	if _, again := g.bounced(id + 1); again != nil {
		t.Error("a lost answer comes out twice")
	}
}

// TestAnInboxThatIsUsedAgain means its last answer. An earlier one bounces by its id, and takes nothing of the last one with it.
func TestAnInboxThatIsUsedAgain(t *testing.T) {
	var g given
	first, last := some(), some()
	id := g.put("shop", "a", first, began)
	g.put("shop", "a", last, began)
	if _, got := g.bounced(id); len(got) != 1 || got[0] != first[0] {
		t.Errorf("bounced: %v", got)
	}
	if got := g.taken("shop", "a"); len(got) != 1 || got[0] != last[0] {
		t.Errorf("lost: %v", got)
	}
}

// TestGivenIsForgotten after its time, and the oldest one if there are too many.
func TestGivenIsForgotten(t *testing.T) {
	var g given
	old := g.put("shop", "old", some(), began)
	g.put("shop", "young", some(), began.Add(rememberFor-1))
	g.put("shop", "now", some(), began.Add(rememberFor))
	if _, got := g.bounced(old); got != nil || g.taken("shop", "old") != nil {
		t.Error("an answer outlives its time")
	}
	if g.taken("shop", "young") == nil {
		t.Error("an answer is forgotten before its time")
	}

	g = given{}
	for i := range rememberMax + 1 {
		g.put("shop", fmt.Sprint(i), some(), began)
	}
	if g.taken("shop", "0") != nil || g.taken("shop", "1") == nil || g.taken("shop", fmt.Sprint(rememberMax)) == nil {
		t.Error("the oldest answer, and no other, makes room for a new one")
	}
}
