package due

import (
	"bytes"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Newest keeps the newest of the tasks it is given, a number of them. A caller that gives it many calls Trim in between.
type Newest struct {
	most int
	all  []Found
	// least: only newer ones are among the newest; zero = any may be.
	least ids.TaskID
}

// Found is where a task is, and the size of its record.
type Found struct {
	Ref
	Bytes int
}

// NewNewest keeps up to most tasks, 1 or more.
func NewNewest(most int) *Newest { return &Newest{most: most} }

// Add gives it a task, which may come twice.
func (n *Newest) Add(s Stay) {
	if bytes.Compare(s.ID[:], n.least[:]) > 0 {
		n.all = append(n.all, Found{s.Ref, s.Bytes})
	}
}

// Trim forgets what is not among the newest.
func (n *Newest) Trim() {
	if len(n.all) <= n.most {
		return
	}
	all, full := n.All()
	if n.all = all; full {
		n.least = all[n.most-1].ID
	}
}

// All are the newest, each once, the newest first; full tells that there may be others.
func (n *Newest) All() (all []Found, full bool) {
	slices.SortFunc(n.all, func(a, b Found) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	n.all = slices.CompactFunc(n.all, func(a, b Found) bool { return a.ID == b.ID })
	return n.all[:min(len(n.all), n.most)], len(n.all) >= n.most
}

// FirstOf is how many of the first of all to read together: up to tasks of them, of so many bytes at most, and one at least.
func FirstOf(all []Found, tasks, bytes int) int {
	n := 0
	for n < len(all) && n < tasks && (n == 0 || bytes >= all[n].Bytes) {
		bytes -= all[n].Bytes
		n++
	}
	return n
}
