// Package turns has callers do one after the other what holds up everything else, such as to look through all that an owner has.
//
// Owns: the order. Keys come one after the other, the callers of each as they came, so one that asks without end is the
// next one's wait once; and the rest after each turn. Never does: know what a turn is for. On failure: nothing can fail; a caller
// too many of its key is refused.
package turns

import "slices"

// order is who has the turn, and who waits for it. W names a caller.
type order[W comparable] struct {
	most  int
	taken bool
	// waiting are the callers of each key that has some, keys their order.
	waiting map[string][]W
	keys    []string
}

// newOrder makes one in which most callers of a key may wait, beside the one whose turn it is.
func newOrder[W comparable](most int) *order[W] {
	return &order[W]{most: most, waiting: map[string][]W{}}
}

// enter gives who the turn, now or as next says; ok is false where too many of the key wait.
func (o *order[W]) enter(key string, who W) (now, ok bool) {
	if !o.taken {
		o.taken = true
		return true, true
	}
	mine := o.waiting[key]
	if len(mine) >= o.most {
		return false, false
	}
	if len(mine) == 0 {
		o.keys = append(o.keys, key)
	}
	o.waiting[key] = append(mine, who)
	return false, true
}

// next ends the turn that is taken. The next one is who's; ok is false where no one waits.
func (o *order[W]) next() (who W, ok bool) {
	if len(o.keys) == 0 {
		o.taken = false
		return who, false
	}
	key := o.keys[0]
	o.keys = o.keys[1:]
	who = o.waiting[key][0]
	if o.waiting[key] = o.waiting[key][1:]; len(o.waiting[key]) > 0 {
		o.keys = append(o.keys, key)
	} else {
		delete(o.waiting, key)
	}
	return who, true
}

// leave takes who out of the line. It is false where the turn is who's by now: next ends it.
func (o *order[W]) leave(key string, who W) bool {
	i := slices.Index(o.waiting[key], who)
	if i < 0 {
		return false
	}
	if o.waiting[key] = slices.Delete(o.waiting[key], i, i+1); len(o.waiting[key]) == 0 {
		delete(o.waiting, key)
		o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
	}
	return true
}
