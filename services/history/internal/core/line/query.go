package line

import (
	"cmp"
	"strings"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Line is the line of an order key, as memory has it.
type Line struct {
	Head *taskstate.Task
	// Waiting is how many tasks wait behind Head.
	Waiting int
	Place
}

// Place is where an order key stands among those that wait: the longest at first.
type Place struct {
	// Since is when its first task came into its state, Unix ms.
	Since int64
	Key   string
}

// Compare is negative where p comes before o.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Since, o.Since), strings.Compare(p.Key, o.Key))
}

// Query says which lines are wanted.
type Query struct {
	// Blocked: only those that are blocked. Waiting: those, and where a task waits.
	Blocked, Waiting bool
	// After: only those behind this place; the zero one = all.
	After Place
}

// Of is the line of an order key; false = there is none.
func (ls *Lines) Of(domain, key string) (one Line, ok bool) {
	l := ls.of[Key{domain, key}]
	if l == nil {
		return Line{}, false
	}
	return l.public(), true
}

// Pick is the line of a task, if the query picks it. Any task finds its line: a walk in steps may meet a task before it is the first one.
func (q *Query) Pick(s *Seat) (one Line, ok bool) {
	if s == nil || s.line == nil {
		return Line{}, false
	}
	one = s.line.public()
	blocked := one.Head.Order().Blocked
	return one, (!q.Blocked || blocked) && (!q.Waiting || blocked || one.Waiting > 0) && (q.After.Key == "" || one.Compare(q.After) > 0)
}

func (l *line) public() Line {
	head := l.first().Task
	return Line{Head: head, Waiting: l.len() - 1, Place: Place{head.Since(), l.key.Name}}
}
