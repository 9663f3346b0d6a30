package table

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// model is the rules in their dumbest form: one flat list of chunks, and one
// trigger at a time.
type model struct {
	chunks   []Chunk
	bookings map[string]map[string]int64
}

func (m *model) pop(w Want) (triggers [][]byte) {
	free := func(c Candidate) int {
		for member, until := range m.bookings[c.Type] {
			if until <= w.Now {
				delete(m.bookings[c.Type], member)
			}
		}
		return c.Limit - len(m.bookings[c.Type])
	}
	for len(triggers) < w.N {
		best := -1
		var which Candidate
		for _, c := range w.Candidates {
			if c.Limit > 0 && free(c) <= 0 {
				continue
			}
			i := m.oldest(w.Tasklist, c.Column)
			if i >= 0 && (best < 0 || c.Priority < which.Priority ||
				c.Priority == which.Priority && m.chunks[i].ReadyAt < m.chunks[best].ReadyAt) {
				best, which = i, c
			}
		}
		if best < 0 {
			break
		}
		c := &m.chunks[best]
		trigger := bytes.Clone(c.Triggers[:ids.TriggerBytes])
		if c.Triggers = c.Triggers[ids.TriggerBytes:]; len(c.Triggers) == 0 {
			m.chunks = slices.Delete(m.chunks, best, best+1)
		}
		if which.Limit > 0 {
			member := string(trigger[:ids.BookingBytes])
			if _, booked := m.bookings[which.Type][member]; booked {
				continue // a double
			}
			if m.bookings[which.Type] == nil {
				m.bookings[which.Type] = map[string]int64{}
			}
			m.bookings[which.Type][member] = w.Until
		}
		triggers = append(triggers, trigger)
	}
	return triggers
}

func (m *model) oldest(list Tasklist, at Column) int {
	best := -1
	for i, c := range m.chunks {
		if c.Tasklist == list && c.Column == at && (best < 0 || before(c, m.chunks[best])) {
			best = i
		}
	}
	return best
}

// put tells whether the chunk is new.
func (m *model) put(c Chunk) bool {
	if slices.ContainsFunc(m.chunks, func(o Chunk) bool {
		return o.Tasklist == c.Tasklist && o.Column == c.Column && same(o, c)
	}) {
		return false
	}
	c.Triggers = bytes.Clone(c.Triggers)
	m.chunks = append(m.chunks, c)
	return true
}

var typeNames = []string{"a", "b", "c"}

// pair is the table and the model, driven with the same random calls.
type pair struct {
	*rapid.T
	table  *Table
	model  *model
	index  Index
	limits map[string]int
	now    int64
	// next numbers the triggers; stored counts those that should be in the table.
	next   uint64
	stored int
	booked []Booking
}

var pairList = Tasklist{Domain: "d", Name: "l"}

// TestI8_TableFollowsTheRules drives the table and the model with the same puts,
// pops, releases, changed limits and passing time. R70: a limit that was lowered is
// compared with the bookings before, of all types, candidates or not.
func TestI8_TableFollowsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{
			T: t, table: New(), model: &model{bookings: map[string]map[string]int64{}}, limits: map[string]int{}, now: 1_000_000,
		}
		p.table.Open("d", 0, "e1")
		if !p.table.Restore("d", 0, "e1", nil, true) {
			t.Fatal("not restored")
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.now += int64(rapid.IntRange(0, 40).Draw(t, "ms"))
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				p.put()
			case 2, 3:
				p.pop()
			case 4:
				p.release()
			case 5:
				p.limits[rapid.SampledFrom(typeNames).Draw(t, "limited")] = rapid.IntRange(0, 5).Draw(t, "limit")
			}
			if p.index.Triggers() != p.stored {
				t.Fatalf("the index counts %d triggers, the table holds %d", p.index.Triggers(), p.stored)
			}
		}
		left := 0
		for _, k := range p.table.Open("d", 0, "").Columns {
			left += k.Triggers
		}
		if left != p.stored {
			t.Fatalf("%d triggers left, want %d", left, p.stored)
		}
	})
}

func (p *pair) put() {
	c := Chunk{Tasklist: pairList, Column: Column{
		Priority: rapid.IntRange(1, 3).Draw(p.T, "priority"), Type: rapid.SampledFrom(typeNames).Draw(p.T, "type"),
	}, ReadyAt: int64(rapid.IntRange(1, 20).Draw(p.T, "ready"))}
	n := rapid.IntRange(1, 6).Draw(p.T, "triggers")
	for range n {
		if p.next == 0 || rapid.IntRange(0, 5).Draw(p.T, "double") > 0 {
			p.next++
		}
		c.Triggers = ids.AppendTrigger(c.Triggers, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, p.next)})
	}
	if !p.model.put(c) {
		return // there already: the table must not count it twice either, the index would
	}
	p.table.Put(0, []Chunk{c})
	p.index.Put(c.Column, c.ReadyAt, n)
	p.stored += n
}

func (p *pair) pop() {
	w := Want{Tasklist: pairList, N: rapid.IntRange(1, 12).Draw(p.T, "n"), Now: p.now, Until: p.now + 50}
	w.Candidates = p.index.Candidates(nil, 100, func(string) bool { return false })
	for i := range w.Candidates {
		w.Candidates[i].Limit = p.limits[w.Candidates[i].Type]
	}
	before := p.table.Slots("d", typeNames, p.now)
	want := p.model.pop(w)
	got, ok := p.table.Pop(0, w)
	if !ok {
		p.Fatal("refused")
	}
	var flat [][]byte
	for _, b := range got.Batches {
		for tr := range slices.Chunk(b.Triggers, ids.TriggerBytes) {
			flat = append(flat, tr)
			if b.Booked {
				p.booked = append(p.booked, Booking{Type: b.Type, Member: string(tr[:ids.BookingBytes])})
			}
		}
	}
	if !slices.EqualFunc(flat, want, bytes.Equal) {
		p.Fatalf("popped\n%x, want\n%x", flat, want)
	}
	for _, h := range got.Heads {
		p.index.Seen(h)
		p.stored -= h.Gone
	}
	for i, n := range p.table.Slots("d", typeNames, p.now) {
		if limit := p.limits[typeNames[i]]; limit > 0 && n > max(limit, before[i]) {
			p.Fatalf("%d bookings of %s, limit %d, %d before", n, typeNames[i], limit, before[i])
		}
	}
}

func (p *pair) release() {
	if len(p.booked) == 0 {
		return
	}
	b := p.booked[0]
	p.booked = p.booked[1:]
	p.table.Settle(Settlement{Domain: "d", Type: b.Type, Release: []byte(b.Member)})
	delete(p.model.bookings[b.Type], b.Member)
}

func TestIndexOrdersByPriorityThenAge(t *testing.T) {
	var x Index
	x.Put(Column{3, "a"}, 1, 1)
	x.Put(Column{1, "b"}, 9, 1)
	x.Put(Column{1, "c"}, 5, 1)
	x.Put(Column{1, "b"}, 4, 1) // an older chunk came late
	got := fmt.Sprint(x.Candidates(nil, 2, func(string) bool { return false }))
	if want := "[{{1 b} 4 0} {{1 c} 5 0}]"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if x.Any(func(typ string) bool { return true }) {
		t.Fatal("skipped columns count")
	}
	for _, c := range []Column{{3, "a"}, {1, "b"}, {1, "c"}} {
		x.Seen(Head{Column: c, Empty: true})
	}
	if !x.Empty() || x.Triggers() != 0 {
		t.Fatalf("%d triggers are left", x.Triggers())
	}
}

// BenchmarkPutPop is the core's share of a task: put in chunks of 10, popped by hundreds.
func BenchmarkPutPop(b *testing.B) {
	list := Tasklist{Domain: "d", Name: "l"}
	tab := New()
	tab.Open("d", 0, "e")
	var index Index
	var chunk []byte
	for i := range 10 {
		chunk = ids.AppendTrigger(chunk, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(i))})
	}
	var at int64
	for n := 0; n < b.N; n += 100 {
		for range 10 {
			at++
			chunk[3] = byte(at) // another id
			c := Chunk{Tasklist: list, Column: Column{Priority: 3, Type: typeNames[at%3]}, ReadyAt: at, Triggers: chunk}
			tab.Put(0, []Chunk{c})
			index.Put(c.Column, c.ReadyAt, 10)
		}
		w := Want{Tasklist: list, N: 100, Candidates: index.Candidates(nil, 32, func(string) bool { return false })}
		got, _ := tab.Pop(0, w)
		for _, h := range got.Heads {
			index.Seen(h)
		}
	}
}
