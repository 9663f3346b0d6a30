package limit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// One answer looks at so many attempts, however many there are.
func TestTopIsBounded(t *testing.T) {
	s := New(nil, 1)
	d := NewDomain(&s, "d", func() {})
	s.Begin(5, 0)
	var all []Setting
	for i := range topMax + 20 {
		name := fmt.Sprintf("t%03d", i)
		all = append(all, Setting{Ref: table.TypeRef(name), Max: 5, Types: []string{name}})
	}
	d.Meet(all)
	const most = topLooksMax/topMax + 100
	for i, l := range d.Met {
		for j := range most {
			l.hold(Member{byte(i), byte(i >> 8), byte(j), byte(j >> 8)}, Holding{since: 1})
		}
	}
	used, leftOut := d.LimitsInUse(2, 9)
	if len(used) != topMax || leftOut != 20 {
		t.Fatalf("%d limits, %d left out", len(used), leftOut)
	}
	named := 0
	for _, u := range used {
		named += len(u.Holders)
		if u.Running != most || !strings.HasPrefix(string(u.Ref), "type/t") {
			t.Fatalf("%+v", u)
		}
	}
	if looked := topLooksMax/most + 1; named != 2*looked || looked == topMax {
		t.Errorf("%d holders of %d limits are named", named, looked)
	}
}

// The tasks of many types that wait for one limit use up all looks, and no more: the holders of the limits behind it are not looked at.
func TestLooksThatAreUsedUpAreNotOwed(t *testing.T) {
	s := New(&asked{}, 1)
	d := NewDomain(&s, "d", func() {})
	s.Begin(5, 0)
	types := make([]string, topLooksMax/looksPerType+1)
	for i := range types {
		types[i] = fmt.Sprint("t", i)
	}
	d.Meet([]Setting{{Ref: table.TypeRef("many"), Max: 1, Types: types}, {Ref: table.TypeRef("b"), Max: 5, Types: []string{"b"}}})
	l := NewList(table.Tasklist{Domain: "d", Name: "l"}, d, &table.Index{}, &asked{})
	l.wait(d.Limits[table.TypeRef("many")], 3)
	d.Limits[table.TypeRef("b")].hold(Member{1}, Holding{since: 1})
	used, _ := d.LimitsInUse(2, 9)
	if len(used) != 2 || used[0].Ref != table.TypeRef("many") || len(used[0].Waiters) != 1 || used[1].Running != 1 || len(used[1].Holders) != 0 {
		t.Errorf("%+v", used)
	}
}
