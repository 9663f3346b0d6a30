// Package admission bounds what is under way at a time, for many who share it.
//
// Owns: who may enter a room of so many places. One key alone may have three quarters of
// them. The last quarter is for keys that have few, so that one that asks without end leaves the
// others theirs. Never does: let anyone wait; a refusal comes at once. On failure: nothing
// can fail.
package admission

import "sync"

const (
	// reserved is the part of the places that is for keys that have few.
	reserved = 4
	// few is the part of all places that such a key has at most.
	few = 16
)

// Room counts what is under way, by key. It is safe for concurrent use.
type Room struct {
	max int

	mu  sync.Mutex
	all int
	of  map[string]int
}

// New makes a room of max places, 1 or more.
func New(max int) *Room { return &Room{max: max, of: map[string]int{}} }

// Enter counts one in, or refuses it. A caller that has entered must leave.
func (r *Room) Enter(key string) bool { return r.Take(key, 1) }

// Leave counts one out.
func (r *Room) Leave(key string) { r.Give(key, 1) }

// Take takes n places at once, 0 or more, for what is counted in bytes; or none, and returns
// false. The caller gives them back, all together or in parts.
func (r *Room) Take(key string, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, mine := r.all+n, r.of[key]+n
	if all > r.max || all > r.max-r.max/reserved && mine > max(r.max/few, 1) {
		return false
	}
	r.all, r.of[key] = all, mine
	return true
}

// Give gives n places back.
func (r *Room) Give(key string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all -= n
	if r.of[key] -= n; r.of[key] == 0 {
		delete(r.of, key)
	}
}
