// Package nottaken keeps the tasklists whose tasks wait longest for a worker.
//
// Owns: the few oldest tasklists. Never does: look at a task, or read a clock. On failure: nothing can fail.
package nottaken

import (
	"cmp"
	"slices"
)

// most is how many tasklists are found whose tasks wait, MostOfDomain how many of one domain: one with abandoned tasklists hides no other.
const (
	most         = 20
	MostOfDomain = 3
)

// Tasklist is one with tasks that are ready and are not paused. ReadyAt is since when the oldest one is, Unix ms.
type Tasklist struct {
	Domain, Name string
	ReadyAt      int64
}

// Waits are the tasklists whose tasks have waited longest for a grant, the oldest first.
type Waits struct {
	// Paused returns which tasks of a domain are paused; nil = none is, or none ever is.
	Paused func(domain string) func(tasklist, typ, group string) bool
	found  []Tasklist
}

// PausedOf returns which tasks of a domain are paused; nil = none is.
func (w *Waits) PausedOf(domain string) func(tasklist, typ, group string) bool {
	if w.Paused == nil {
		return nil
	}
	return w.Paused(domain)
}

// Begin forgets them.
func (w *Waits) Begin() { w.found = nil }

// Add takes up a tasklist, if it is among the oldest ones of all, and of its domain.
func (w *Waits) Add(one Tasklist) {
	if one.ReadyAt == 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(w.found, one, func(a, b Tasklist) int { return cmp.Compare(a.ReadyAt, b.ReadyAt) })
	w.found = slices.Insert(w.found, at, one)
	of := 0
	w.found = slices.DeleteFunc(w.found, func(t Tasklist) bool {
		if t.Domain == one.Domain {
			of++
		}
		return t.Domain == one.Domain && of > MostOfDomain
	})
	w.found = w.found[:min(len(w.found), most)]
}

// NotTaken returns them, as of a moment ago. The result never changes.
func (w *Waits) NotTaken() []Tasklist { return w.found }
