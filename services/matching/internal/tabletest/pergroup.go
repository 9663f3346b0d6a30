package tabletest

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const perPartner = table.Ref("type/pay/group")

// partner is what a shard says about the limit of one group.
type partner struct {
	group            string
	most, held, wait int
	ttl              time.Duration
}

// said is a call that says so, about a limit per group that its shard has counted so often.
func said(count uint64, complete bool, all ...partner) table.Call {
	c := table.Call{Stances: []table.Stance{{Ref: perPartner, PerGroup: table.PerGroup{Count: count, Complete: complete}}}}
	for _, p := range all {
		c.Stances = append(c.Stances, table.Stance{Ref: perPartner.Of(p.group), Of: 1, Max: p.most, Held: p.held, Wait: p.wait, TTL: p.ttl})
	}
	return c
}

// takes has a call take up to n triggers of each group that it says something about, of which there are more. It returns how
// many of each it got, and what held the others up.
func (r *rig) takes(shard, n int, c table.Call) (got, blocked string) {
	r.Helper()
	l := table.Tasklist{Domain: domain, Name: fmt.Sprint("list", shard)}
	w := table.Want{Tasklist: l, N: n * (len(c.Stances) - 1)}
	for i, s := range c.Stances[1:] {
		r.calls++
		_, group, _ := s.Ref.Group()
		put := chunk(3, "pay", int64(r.calls), int(r.calls)*100, n+1)
		put.Tasklist, put.Group, put.Rank, put.Step = l, group, int64(r.calls), 1
		c.Put = append(c.Put, put)
		w.Candidates = append(w.Candidates, table.Candidate{Column: put.Column, Head: 1, Path: []int{0, i + 1}, Most: n})
	}
	c.Wants = []table.Want{w}
	out := r.do(shard, c)
	for _, at := range w.Candidates {
		taken := 0
		for _, b := range out.Taken[0].Batches {
			if b.Column == at.Column {
				taken += count(table.Taken{Batches: []table.Batch{b}})
			}
		}
		got += fmt.Sprint(taken, " ")
	}
	return got, blockedBy(out.Taken[0])
}

func (r *rig) takesJust(shard, n int, c table.Call, got, blocked string) {
	r.Helper()
	g, b := r.takes(shard, n, c)
	r.equal(fmt.Sprintf("shard %d with %+v", shard, c.Stances), g+"| "+b, got+"| "+blocked)
}

// used is how many slots of a group's limit all shards hold, as a shard sees that holds some itself.
func (r *rig) used(shard int, count uint64, p partner) int {
	r.Helper()
	return r.do(shard, said(count, false, p)).Limits[1].Used
}

// perGroup: each group has slots of its own, and those of all shards count.
func perGroup(r *rig) {
	r.do(0, said(1, true))
	r.do(1, said(1, true))
	r.takesJust(0, 3, said(1, true, partner{group: "acme", most: 2}, partner{group: "zeta", most: 9}), "2 3 ", "type/pay/group/acme full")
	// Another shard has what is left of each; who goes on holding what it has gets no more.
	r.takesJust(1, 3, said(1, true, partner{group: "acme", most: 2}, partner{group: "zeta", most: 5}), "0 2 ", "type/pay/group/acme full type/pay/group/zeta full")
	r.takesJust(0, 1, said(1, true, partner{group: "acme", most: 2, held: 2}), "0 ", "type/pay/group/acme full")
	// A slot that is given back is another's at once.
	r.do(0, said(1, true, partner{group: "acme", most: 2, held: 1}))
	r.takesJust(1, 3, said(1, true, partner{group: "acme", most: 2}), "1 ", "type/pay/group/acme full")
}

// perGroupWhole: nothing is booked before all shards are complete, whatever they say about single groups, and again when the
// memory is lost. Nothing is left of a limit that is no more.
func perGroupWhole(r *rig) {
	waits := "type/pay/group restoring"
	acme := partner{group: "acme", most: 9}
	r.takesJust(0, 1, said(1, true, acme), "0 ", waits)
	r.do(1, said(1, true))
	r.do(2, said(1, false, partner{group: "acme", most: 9, held: 7, ttl: time.Hour}))
	r.takesJust(0, 1, said(1, true, acme), "0 ", waits)
	r.do(2, said(1, true))
	r.takesJust(0, 4, said(1, true, acme), "2 ", "type/pay/group/acme full")
	r.forget()
	r.takesJust(0, 1, said(1, true, acme), "0 ", waits)
	r.do(1, said(1, true))
	r.do(2, said(1, true))
	r.takesJust(0, 4, said(1, true, acme), "4 ", "")
	r.drop(perPartner)
	for i := range r.shards {
		r.do(i, said(1, true))
	}
	r.equal("used", r.used(1, 1, acme), 0)
}

// perGroupCounts: what an owner says that has counted again voids what its shard said before, once it is complete.
func perGroupCounts(r *rig) {
	r.do(0, said(1, true, partner{group: "acme", most: 9, held: 2}, partner{group: "zeta", most: 9, held: 3}))
	r.do(1, said(1, true, partner{group: "zeta", most: 9, held: 1}))
	late := r.call(0, said(1, true, partner{group: "acme", most: 9, held: 9}))
	r.do(0, said(2, false, partner{group: "acme", most: 9, held: 1}))
	r.equal("refused", r.send(late), table.Outcome{Overtaken: true})
	watch := func(what string, acme, zeta int) {
		r.Helper()
		out := r.do(1, said(1, true, partner{group: "acme", most: 9}, partner{group: "zeta", most: 9, held: 1}))
		r.equal(what, []int{out.Limits[1].Used, out.Limits[2].Used}, []int{acme, zeta})
	}
	watch("before it is complete", 1, 4)
	r.do(0, said(2, true))
	watch("then", 1, 1)
	// Another owner begins to count at one.
	r.calls++
	c := r.call(0, said(1, true, partner{group: "zeta", most: 9, held: 5}))
	c.Seq.Epoch = 2
	r.send(c)
	watch("of another owner", 0, 6)
}

// perGroupLine: a shard that waits for a slot of a group comes before one that comes later; and what is not shown for long counts
// no more.
func perGroupLine(r *rig) {
	r.do(0, said(1, true))
	r.do(1, said(1, true))
	hold := func(held int) table.LimitState {
		return r.do(0, said(1, true, partner{group: "acme", most: 1, held: held, ttl: time.Minute})).Limits[1]
	}
	hold(1)
	r.takesJust(1, 1, said(1, true, partner{group: "acme", most: 1, wait: 3}), "0 ", "type/pay/group/acme full")
	r.equal("others", hold(0).Others, true)
	r.takesJust(0, 1, said(1, true, partner{group: "acme", most: 1, wait: 3}), "0 ", "type/pay/group/acme in line")
	r.store.Pass(table.LineStale)
	r.takesJust(0, 1, said(1, true, partner{group: "acme", most: 1}), "1 ", "type/pay/group/acme full")
	r.store.Pass(table.ExpiryAfter - time.Second)
	r.equal("used", r.used(1, 1, partner{group: "acme", most: 1}), 1)
	r.store.Pass(2 * time.Second)
	r.equal("used when expired", r.used(1, 1, partner{group: "acme", most: 1}), 0)
}

// turnsByRank: columns that have a group give what they may, one after another; other types come by their age.
func turnsByRank(r *rig) {
	put := func(group string, at, rank int64, first int) table.Chunk {
		c := chunk(3, "pay", at, first, 9)
		c.Group, c.Rank, c.Step = group, rank, 10
		return c
	}
	r.put(0, put("acme", 40, 100, 1), put("zeta", 10, 200, 20), put(table.NoGroup, 70, 300, 40), chunk(3, "mail", 50, 60, 2))
	at := func(group string, most int) table.Candidate {
		return table.Candidate{Column: table.Column{Priority: 3, Type: "pay", Group: group}, Head: 40, Most: most}
	}
	got := r.pop(8, at("acme", 2), at("zeta", 3), at(table.NoGroup, 1), candidate(3, "mail", 50))
	r.equal("taken", numbers(got), "1 2 20 21 22 40 60 61")
	r.equal("heads", got.Heads[:3], []table.Head{
		{Column: at("acme", 0).Column, ReadyAt: 40, Rank: 120, Gone: 2},
		{Column: at("zeta", 0).Column, ReadyAt: 10, Rank: 230, Gone: 3},
		{Column: at(table.NoGroup, 0).Column, ReadyAt: 70, Rank: 310, Gone: 1},
	})
	known := r.open(0).Columns
	r.equal("columns", fmt.Sprint(known), fmt.Sprint([]table.Known{
		{Tasklist: list, Column: at(table.NoGroup, 0).Column, ReadyAt: 70, Rank: 310, Triggers: 8},
		{Tasklist: list, Column: at("acme", 0).Column, ReadyAt: 40, Rank: 120, Triggers: 7},
		{Tasklist: list, Column: at("zeta", 0).Column, ReadyAt: 10, Rank: 230, Triggers: 6},
	}))
	r.do(0, table.Call{Clear: []table.Place{{Tasklist: list, Column: known[0].Column}, {Tasklist: list, Column: known[1].Column}, {Tasklist: list}}})
	r.equal("left", len(r.open(0).Columns), 1)
	r.do(0, table.Call{Clear: []table.Place{{Tasklist: list, Column: known[2].Column}}})
	r.equal("left", len(r.open(0).Columns), 0)
}
