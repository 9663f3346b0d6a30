package table

import "testing"

// Triggers are counted by type, over all priorities, as far as is known.
func TestTriggersOfTypes(t *testing.T) {
	var x Index
	x.Put(Column{Priority: 1, Type: "a"}, 1, 2)
	x.Put(Column{Priority: 3, Type: "a"}, 2, 3)
	x.Put(Column{Priority: 2, Type: "b"}, 3, 5)
	x.Put(Column{Priority: 2, Type: "c"}, 4, 7)
	x.Seen(Head{Column: Column{Priority: 3, Type: "a"}, ReadyAt: 2, Gone: 1})
	if n := x.TriggersOf([]string{"a", "c", "none"}); n != 11 || x.Columns() != 4 {
		t.Errorf("%d triggers, %d columns", n, x.Columns())
	}
	x.Seen(Head{Column: Column{Priority: 2, Type: "c"}, Empty: true})
	if n := x.TriggersOf([]string{"a", "c"}); n != 4 || x.TriggersOf(nil) != 0 || x.Columns() != 3 {
		t.Errorf("%d triggers, %d columns", n, x.Columns())
	}
}
