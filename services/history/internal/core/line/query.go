package line

import (
	"cmp"
	"slices"
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

// Query says which lines of a domain are wanted.
type Query struct {
	Domain string
	// Key is the one that is wanted; "" = all. Blocked: only those that are blocked. Waiting: those, and where a task waits.
	Key              string
	Blocked, Waiting bool
	// After: only those behind this place; the zero one = all.
	After Place
	Limit int
}

// Find returns the first lines that a query picks; more: there are more.
func (ls *Lines) Find(q *Query) (found []Line, more bool) {
	if q.Key != "" {
		if l := ls.of[Key{q.Domain, q.Key}]; l != nil {
			found = append(found, l.public())
		}
		return found, false
	}
	for k, l := range ls.of {
		if k.Domain != q.Domain {
			continue
		}
		one := l.public()
		blocked := one.Head.Order().Blocked
		if q.Blocked && !blocked || q.Waiting && !blocked && one.Waiting == 0 || q.After.Key != "" && one.Compare(q.After) <= 0 {
			continue
		}
		if len(found) > q.Limit && one.Compare(found[q.Limit].Place) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, one, func(a, b Line) int { return a.Compare(b.Place) })
		found = slices.Insert(found, at, one)
		found = found[:min(len(found), q.Limit+1)]
	}
	return found[:min(len(found), q.Limit)], len(found) > q.Limit
}

func (l *line) public() Line {
	head := l.first().Task
	return Line{Head: head, Waiting: l.len() - 1, Place: Place{head.Since(), l.key.Name}}
}
