package limit

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// asked is what limits ask of a tasklist.
type asked struct {
	looks, back int
	paired      int
}

func (a *asked) Look()                   { a.looks++ }
func (a *asked) Polled() bool            { return true }
func (a *asked) PutBack(c table.Chunk)   { a.back += c.Len() }
func (a *asked) Back(table.Column)       {}
func (a *asked) Strict(_, _ string) bool { return false }

// Pair gives all triggers to polls, each of which uses a slot.
func (a *asked) Pair(c table.Chunk, p *Path) (left []byte, given int) {
	for i := range c.Len() {
		p.Hold(MemberOf(ids.TriggerAt(c.Triggers, i)))
	}
	a.paired += c.Len()
	return nil, c.Len()
}

func (a *asked) GroupLimits(string) map[string]int { return nil }

var column = table.Column{Priority: 3, Type: "a"}

// trigger is the n-th one.
func trigger(n int) ids.Trigger {
	return ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(n)), Version: 1}
}

// room is the limits of a shard with one partition, and a tasklist of a domain in which two attempts of type a may run.
type room struct {
	s     Limits
	d     *Domain
	l     *List
	asked asked
	calls int
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{}
	r.s = New(&r.asked, 1)
	r.d = NewDomain(&r.s, "d", func() { r.calls++ })
	r.d.Open = true
	r.s.Begin(time.Second, 1000)
	counted, groups := r.d.Meet([]Setting{{Ref: table.TypeRef("a"), Max: 2, Types: []string{"a"}}})
	testkit.MustEqual(t, "limits to be counted, one of them by group", []any{len(counted), groups}, []any{1, false})
	r.l = NewList(table.Tasklist{Domain: "d", Name: "l"}, r.d, &table.Index{}, &r.asked)
	if !r.l.Unavailable(column) {
		t.Fatal("a slot may be booked before the attempts are counted")
	}
	c, types, restore := r.s.BeginCount(counted, true)
	testkit.MustEqual(t, "counted are attempts of", types, []string{"a"})
	running := Running{Domain: "d", Tasklist: "l", Type: "a", Member: string(bytesOf(MemberOf(trigger(99))))}
	if malformed := c.Learn(0, 0, []Running{running, {Member: "short"}}); malformed != 1 || len(restore) > 0 {
		t.Fatalf("%d malformed, %v are to set their entries", malformed, restore)
	}
	return r
}

func bytesOf(m Member) []byte { return m[:] }

// call asks the tables for triggers. They return n, and say how many slots all shards use; 0 triggers = there was no slot.
func (r *room) call(n, used int) {
	c := &Call{}
	r.d.StandDue(c)
	p := r.l.PathOf(column)
	c.Ask(r.l, p, &table.Candidate{Column: column}, 2)
	r.s.Stances(c)
	c.End()
	states := []table.LimitState{{Used: used}}
	if n > 0 {
		c.Took(p, n, false, states)
	} else {
		c.Block(0, table.Full)
	}
	r.s.Learn(c, states)
	for i := range n {
		p.Hold(MemberOf(trigger(i)))
	}
}

// use is how the limit is used.
func (r *room) use() InUse {
	all, _ := r.d.LimitsInUse(0, r.s.now)
	return all[0]
}

// I8: after the attempts that run are counted, the tables learn of them. A slot that comes free is used again without a call, for what was read ahead.
func TestI8_ASlotIsCountedAndUsedAgain(t *testing.T) {
	r := newRoom(t)
	if r.l.Unavailable(column) || r.calls == 0 {
		t.Fatal("the limit waits to be counted still, or the tables do not learn of it")
	}
	r.call(1, 2)
	u := r.use()
	testkit.Equal(t, "attempts that run, slots that the tables know of", []int{u.Running, u.Entry}, []int{2, 2})
	r.call(0, 2)
	if !r.l.Unavailable(column) {
		t.Error("the limit is not full")
	}
	if !r.l.KeepAhead(r.d.Met[0], table.Chunk{Tasklist: r.l.Tasklist, Column: column, Triggers: ids.AppendTrigger(nil, trigger(7))}) {
		t.Fatal("nothing is read ahead of a full limit")
	}
	m := MemberOf(trigger(0))
	r.d.End("a", nil, m[:])
	r.s.TakeUpSlack()
	u = r.use()
	testkit.Equal(t, "paired, read ahead, attempts that run", []int{r.asked.paired, r.l.ReadAhead(), u.Running}, []int{1, 0, 2})
}

// A limit that is deleted blocks nothing any more, and what was read ahead of it goes back.
func TestALimitThatIsDeletedBlocksNothing(t *testing.T) {
	r := newRoom(t)
	r.call(1, 2)
	r.call(0, 2)
	r.l.KeepAhead(r.d.Met[0], table.Chunk{Tasklist: r.l.Tasklist, Column: column, Triggers: ids.AppendTrigger(nil, trigger(7))})
	gone := r.d.Change(nil)
	r.d.Meet(nil)
	r.l.Repath()
	testkit.Equal(t, "deleted", gone, []table.Ref{table.TypeRef("a")})
	if r.l.Unavailable(column) || r.asked.back != 1 || r.l.ReadAhead() != 0 {
		t.Errorf("%d went back, %d are ahead", r.asked.back, r.l.ReadAhead())
	}
}
