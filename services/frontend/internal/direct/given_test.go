package direct

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var began = time.UnixMilli(nowMS)

// some is an answer of one task.
func some() []Attempt { return []Attempt{{ID: ids.NewTaskID(began, 0, rand.Uint64())}} }

// TestGiven: an answer comes out once, by its id or by its inbox, and only for its domain.
func TestGiven(t *testing.T) {
	var g Given
	if _, none := g.Bounced(1); none != nil || g.Lost("shop", "a") != nil {
		t.Error("something comes out before an answer goes in")
	}
	first, second := some(), some()
	id := g.Add("shop", "a", first, began)
	g.Add("shop", "b", second, began)
	if got := g.Lost("other", "a"); got != nil {
		t.Errorf("another domain takes %v", got)
	}
	domain, got := g.Bounced(id)
	if domain != "shop" || len(got) != 1 || got[0] != first[0] {
		t.Errorf("bounced: %v of %q", got, domain)
	}
	if _, again := g.Bounced(id); again != nil || g.Lost("shop", "a") != nil {
		t.Error("an answer comes out twice")
	}
	if got := g.Lost("shop", "b"); len(got) != 1 || got[0] != second[0] {
		t.Errorf("lost: %v", got)
	}
	if _, again := g.Bounced(id + 1); again != nil {
		t.Error("a lost answer comes out twice")
	}
}

// TestAnInboxThatIsUsedAgain means its last answer. An earlier one bounces by its id, and takes nothing of the last one with it.
func TestAnInboxThatIsUsedAgain(t *testing.T) {
	var g Given
	first, last := some(), some()
	id := g.Add("shop", "a", first, began)
	g.Add("shop", "a", last, began)
	if _, got := g.Bounced(id); len(got) != 1 || got[0] != first[0] {
		t.Errorf("bounced: %v", got)
	}
	if got := g.Lost("shop", "a"); len(got) != 1 || got[0] != last[0] {
		t.Errorf("lost: %v", got)
	}
}

// TestGivenIsForgotten after its time, and the oldest one if there are too many.
func TestGivenIsForgotten(t *testing.T) {
	var g Given
	old := g.Add("shop", "old", some(), began)
	g.Add("shop", "young", some(), began.Add(rememberFor-1))
	g.Add("shop", "now", some(), began.Add(rememberFor))
	if _, got := g.Bounced(old); got != nil || g.Lost("shop", "old") != nil {
		t.Error("an answer outlives its time")
	}
	if g.Lost("shop", "young") == nil {
		t.Error("an answer is forgotten before its time")
	}

	g = Given{}
	for i := range rememberMax + 1 {
		g.Add("shop", fmt.Sprint(i), some(), began)
	}
	if g.Lost("shop", "0") != nil || g.Lost("shop", "1") == nil || g.Lost("shop", fmt.Sprint(rememberMax)) == nil {
		t.Error("the oldest answer, and no other, makes room for a new one")
	}
}

// TestReleases: each attempt is handed back by its whole token.
func TestReleases(t *testing.T) {
	a := Attempt{ID: ids.NewTaskID(began, 0, rand.Uint64()), Token: ids.Token{Position: ids.NewPosition(7, ids.LaneFirst).InShared(), Version: 1, Nonce: 9}}
	all := Releases("shop", []Attempt{a})
	if len(all) != 1 || all[0].ID != a.ID {
		t.Fatalf("%+v", all)
	}
	e := all[0].Event
	testkit.Equal(t, "kind", e.Kind, logv1.EventKind_EVENT_KIND_RELEASED)
	testkit.Equal(t, "domain", e.Domain, "shop")
	testkit.Equal(t, "task", string(e.TaskId), string(a.ID[:]))
	testkit.Equal(t, "token", ids.Token{Position: ids.Position(e.Position), Version: e.Version, Nonce: e.Nonce}, a.Token)
}
