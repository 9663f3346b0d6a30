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
