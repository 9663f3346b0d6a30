package match

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
)

// spreading is what a world knows of partitions of tasklists.
type spreading struct {
	// spread is how many a tasklist has, 1 by default, turn the last of them that got a task.
	spread, turn map[string]int
	// scales are tasklists whose number the engine sets.
	scales map[string]bool
	// strict are those of which the most urgent priority goes first.
	strict map[string]bool
	// mute tells whether no frontend takes a poll that is given up. moves counts those that one took.
	mute  func(inbox string) bool
	moves int
}

// partsOf is how many partitions a tasklist has.
func (w *world) partsOf(list string) int { return max(1, w.spread[list]) }

// place puts a task into the next partition of its tasklist.
func (w *world) place(t *task) {
	w.turn[t.list]++
	t.part = w.turn[t.list] % w.partsOf(t.list)
	t.shard = w.shardOf(t.list, t.part)
}

// move has the frontend send a poll to another partition; or there is none.
func (o *owner) move(m tree.Move) {
	w := o.w
	if m.Poll == 0 {
		w.t.Fatal("a poll is given up that no frontend asks for")
	}
	for inbox := range o.live {
		seen := w.polls[inbox]
		if seen.id != m.Poll {
			continue
		}
		if w.mute(inbox) {
			w.after(w.delay(), func() {
				seen.id = 0
				o.give(func(in *Inputs) { in.Unmoved = append(in.Unmoved, m) })
			})
			return
		}
		delete(o.live, inbox)
		w.moves++
		p := seen.poll
		w.after(w.delay(), func() {
			p.Partition, p.Moved, p.For = m.Partition, true, seen.until-w.now
			if w.poll(inbox, p) {
				w.polls[inbox].answered, w.polls[inbox].again = seen.answered, seen.again
			}
		})
		return
	}
	w.t.Fatalf("poll %d is given up, which is not here", m.Poll)
}

// branch has the parent of a partition hear what it tells.
func (w *world) branch(b tree.Branch) {
	for _, o := range w.owners {
		if o.shard == w.shardOf(b.Name, ids.ParentPartition(b.Partition)) {
			o.give(func(in *Inputs) { in.Branches = append(in.Branches, b) })
		}
	}
}
