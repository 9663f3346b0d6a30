package match

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// check counts again, the slow way, what a shard counts as it goes.
func check(w *world, s *Shard) {
	t := w.t
	t.Helper()
	undecided := checkGrabs(w, s)
	for _, d := range s.domains {
		checkLimits(t, d)
		if !w.byHand {
			checkNobodyIsForgotten(t, s, d)
		}
	}
	for name, l := range s.lists {
		testkit.MustEqual(t, fmt.Sprint("undecided of ", name), l.source.Undecided, undecided[l])
	}
}

// checkLimits counts what was read ahead, by type, and the groups that have a limit. What waits for a slot waits for one that is not free.
func checkLimits(t *testing.T, d *domain) {
	t.Helper()
	testkit.MustEqual(t, "limits in order", len(d.Met), len(d.Limits))
	for ref, l := range d.Limits {
		if l.Ref != ref || len(l.Ahead) > 0 && l.Blocked == 0 {
			t.Fatalf("%s is listed as %s; blocked: %d; read ahead: %+v", l.Ref, ref, l.Blocked, l.Ahead)
		}
		if l.ByGroup == nil {
			continue
		}
		for group, one := range l.ByGroup.Limits {
			if one.Group != group || one.Of != l || one.Ref != l.Ref.Of(group) || d.Limit(one.Ref) != one {
				t.Fatalf("%s is not known as what it is", one.Ref)
			}
			for _, p := range one.Parked {
				if one.Blocked == 0 || d.Open && p.List.Index.TriggersIn(p.At) > 0 && p.List.Index.Aside(p.At) {
					t.Fatalf("%v waits for a slot of %s, which may be free, or is not aside", p, one.Ref)
				}
			}
		}
	}
	for _, l := range d.Sources {
		ahead := map[string]int{}
		for _, lim := range d.Limits {
			for _, a := range lim.Ahead {
				if a.List == l.List {
					ahead[a.Chunk.Type] += a.Chunk.Len()
				}
			}
		}
		testkit.MustEqual(t, fmt.Sprint("read ahead of ", l.Tasklist), l.Ahead, ahead)
	}
}

// checkGrabs counts the grabs that polls wait for, and those of each tasklist. No trigger is under way
// twice, and none without its slot, but for attempts that history has reported as over.
func checkGrabs(w *world, s *Shard) (undecided map[*list]int) {
	t := w.t
	t.Helper()
	pending, undecided := map[*poll]int{}, map[*list]int{}
	seen := map[[ids.TriggerBytes]byte]bool{}
	n := 0
	s.grabs.Undecided(func(r *request) {
		key := [ids.TriggerBytes]byte(ids.AppendTrigger(nil, r.Trigger))
		if seen[key] {
			t.Fatalf("a trigger is under way twice")
		}
		seen[key] = true
		n++
		undecided[r.From.List]++
		if r.Waits() {
			pending[r.Poll]++
		}
		for l := range r.From.List.Covering(r.From.Column) {
			if !l.Holds(limit.MemberOf(r.Trigger)) && !w.ran(r.Trigger) {
				t.Fatalf("a grab holds no slot of %s", l.Ref)
			}
		}
		if !s.grabs.MayAsk(r.Trigger.ID.Partition(), 0) {
			t.Fatal("a grab was made before the fence")
		}
	})
	testkit.MustEqual(t, "grabs are under way, are counted", n, s.Census().Grabs)
	for p, n := range pending {
		testkit.MustEqual(t, "grabs that a poll waits for, are counted", p.Pending, n)
	}
	return undecided
}

// checkNobodyIsForgotten: where nothing is under way, a poll has either nothing to get, or waits for a slot.
func checkNobodyIsForgotten(t *testing.T, s *Shard, d *domain) {
	t.Helper()
	if !d.Open || d.Calling() || s.calls.Busy() > 0 || s.drain.on {
		return
	}
	for ref, l := range d.Limits {
		for waits := range l.InLine() {
			if !l.Closed() {
				t.Fatalf("%v waits for a slot of %s, which may be free", waits.Tasklist, ref)
			}
		}
	}
	for _, one := range d.Sources {
		l := one.Of
		if !one.Idle() {
			t.Fatalf("%v is to be asked for, and no call does", l.Tasklist)
		}
		l.queue.Each(func(p *poll) bool {
			if p.Room(s.cfg.AnswerBytesMax) <= 0 {
				return true
			}
			for _, at := range l.index.Candidates(p.Types, 0, 1000, func(table.Column) bool { return false }) {
				if !slices.ContainsFunc(d.Met, func(lim *limit.Limit) bool { return covers(&lim.Setting, l.Name, at.Type) && l.WaitsForSlot() }) {
					t.Fatalf("a poll at %v could have %v", l.Tasklist, at)
				}
			}
			return false
		})
	}
}

// checkEmpty: what has ended leaves nothing.
func checkEmpty(t *testing.T, s *Shard) {
	t.Helper()
	n := map[string]int{
		"domains": len(s.domains), "lists": len(s.lists), "polls": s.waiting.Len(), "asks": s.questions.Len(),
		"taken": len(s.calls.Taken), "arrivals": len(s.arrivals.All), "busy": s.calls.Busy(), "timed": len(s.limits.Timed),
		"slack": len(s.limits.Slack), "ahead": s.ahead(),
	}
	n["grabs"], n["handBacks"], n["aside"], n["receipts"] = s.grabs.Census()
	if s.waiting.Watchful() {
		n["polls and answers"]++
	}
	if s.tree.Watchful() {
		n["partitions that are watched"]++
	}
	for what, count := range n {
		if count > 0 {
			t.Errorf("%d %s are left", count, what)
		}
	}
}

func (c *Counts) add(o *Counts) {
	c.HintBatches += o.HintBatches
	c.Triggers += o.Triggers
	c.Polls += o.Polls
	c.PollsRefused += o.PollsRefused
	c.SyncMatches += o.SyncMatches
	c.Matches += o.Matches
	c.GrabBatches += o.GrabBatches
	c.Granted += o.Granted
	c.GrabsRefused += o.GrabsRefused
	c.HandedBack += o.HandedBack
	c.Bounced += o.Bounced
	c.Duplicates += o.Duplicates
	c.Losses += o.Losses
	c.Audited += o.Audited
	c.WouldWait += o.WouldWait
	c.Rejected += o.Rejected
	c.Displaced += o.Displaced
	c.Looks += o.Looks
	c.Malformed += o.Malformed
	c.PollsUp += o.PollsUp
	c.PollsDown += o.PollsDown
	c.WaitingPolls = o.WaitingPolls
}

// checkPuts holds that triggers are stored with those of their group and cost.
func (w *world) checkPuts(c *table.Call) {
	for _, chunk := range c.Put {
		for i := range chunk.Len() {
			if group := cmp.Or(w.tasks[ids.TriggerAt(chunk.Triggers, i).ID].group, table.NoGroup); chunk.Group != "" && chunk.Group != group {
				w.t.Fatalf("a task of group %s in the column %v", group, chunk.Column)
			}
			testkit.MustEqual(w.t, "a task that costs in a chunk of those that cost", w.tasks[ids.TriggerAt(chunk.Triggers, i).ID].cost, chunk.Cost)
		}
	}
}
