package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// I11: tasks of a domain that has few on their way into another store go with the next job, whatever others have.
func TestI11_DomainsTakeTurnsOnTheWayIntoAStore(t *testing.T) {
	var l ledger
	add := func(domain string, n int) {
		for range n {
			e := &Entry{}
			e.Domain = domain
			l.add(e, 1)
		}
	}
	add("flood", 1000)
	add("shop", 5)
	of := map[string]int{}
	for _, e := range l.next(10) {
		of[e.Domain]++
	}
	testkit.Equal(t, "in the first job", of, map[string]int{"flood": 5, "shop": 5})
	if l.next(10) != nil {
		t.Error("a second job began before the first was stored")
	}
	testkit.Equal(t, "stored", len(l.done(7)), 10)
	testkit.Equal(t, "the flood alone has the next job", len(l.next(500)), 500)
}
