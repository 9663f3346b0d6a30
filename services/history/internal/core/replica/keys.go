package replica

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
	KeyPlace
}

// KeyPlace is where an order key stands among those that wait: the longest at first.
type KeyPlace struct {
	// Since is when its first task came into its state, Unix ms.
	Since int64
	Key   string
}

// Compare is negative where p comes before o.
func (p KeyPlace) Compare(o KeyPlace) int {
	return cmp.Or(cmp.Compare(p.Since, o.Since), strings.Compare(p.Key, o.Key))
}

// LinesQuery says which lines of a domain are wanted.
type LinesQuery struct {
	Domain string
	// Key is the one that is wanted; "" = all. Blocked: only those that are blocked. Waiting: those, and where a task waits.
	Key              string
	Blocked, Waiting bool
	// After: only those behind this place; the zero one = all.
	After KeyPlace
	Limit int
}

// Lines are the first lines that a query picks; more: there are more.
func (r *Replica) Lines(q *LinesQuery) (found []Line, more bool) {
	if q.Key != "" {
		if l := r.keys[orderKey{q.Domain, q.Key}]; l != nil {
			found = append(found, l.line(q.Key))
		}
		return found, false
	}
	for k, l := range r.keys {
		if k.domain != q.Domain {
			continue
		}
		one := l.line(k.key)
		blocked := one.Head.Order().Blocked
		if q.Blocked && !blocked || q.Waiting && !blocked && one.Waiting == 0 || q.After.Key != "" && one.Compare(q.After) <= 0 {
			continue
		}
		if len(found) > q.Limit && one.Compare(found[q.Limit].KeyPlace) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, one, func(a, b Line) int { return a.Compare(b.KeyPlace) })
		found = slices.Insert(found, at, one)
		found = found[:min(len(found), q.Limit+1)]
	}
	return found[:min(len(found), q.Limit)], len(found) > q.Limit
}

func (l *orderLine) line(key string) Line {
	head := &l.first().Task
	return Line{Head: head, Waiting: len(l.places) - l.gone - 1, KeyPlace: KeyPlace{head.Since(), key}}
}
