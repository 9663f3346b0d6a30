// Package turns says who is next where one caller at a time may look through all that waits.
//
// Owns: the order. Domains come one after the other, the callers of each as they came, so a domain that
// asks without end is the next one's wait once (R3). Never does: wait, or know what a turn is for. On failure: nothing
// can fail; a caller too many of its domain is refused.
package turns

import "slices"

// Turns is a line of callers. W names one of them.
type Turns[W comparable] struct {
	most  int
	taken bool
	// waiting are the callers of each domain that has some, order these domains.
	waiting map[string][]W
	order   []string
}

// New makes a line in which most callers of a domain may wait, beside the one whose turn it is.
func New[W comparable](most int) *Turns[W] {
	return &Turns[W]{most: most, waiting: map[string][]W{}}
}

// Enter gives who the turn, now or as Next says; ok is false where too many of the domain wait.
func (t *Turns[W]) Enter(domain string, who W) (now, ok bool) {
	if !t.taken {
		t.taken = true
		return true, true
	}
	mine := t.waiting[domain]
	if len(mine) >= t.most {
		return false, false
	}
	if len(mine) == 0 {
		t.order = append(t.order, domain)
	}
	t.waiting[domain] = append(mine, who)
	return false, true
}

// Next ends the turn that is taken. The next one is who's; ok is false where no one waits.
func (t *Turns[W]) Next() (who W, ok bool) {
	if len(t.order) == 0 {
		t.taken = false
		return who, false
	}
	domain := t.order[0]
	t.order = t.order[1:]
	who = t.waiting[domain][0]
	if t.waiting[domain] = t.waiting[domain][1:]; len(t.waiting[domain]) > 0 {
		t.order = append(t.order, domain)
	} else {
		delete(t.waiting, domain)
	}
	return who, true
}

// Leave takes who out of the line. It is false where the turn is who's by now: Next ends it.
func (t *Turns[W]) Leave(domain string, who W) bool {
	i := slices.Index(t.waiting[domain], who)
	if i < 0 {
		return false
	}
	if t.waiting[domain] = slices.Delete(t.waiting[domain], i, i+1); len(t.waiting[domain]) == 0 {
		delete(t.waiting, domain)
		t.order = slices.DeleteFunc(t.order, func(d string) bool { return d == domain })
	}
	return true
}
