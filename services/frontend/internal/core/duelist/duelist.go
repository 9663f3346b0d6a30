// Package duelist decides how a list of waiting tasks by due time is cut into pages.
//
// A page has as many whole minutes as fit, of all partitions. A minute that does not fit has pages of its own, partition by partition, as its tasks lie
// in the store.
//
// Owns: the questions that make a page, their order, and the cursor of the next page.
//
// Never does: ask a partition, or know a task.
//
// On failure: nothing can fail. A page that would be too large is asked for again with fewer minutes.
package duelist

import (
	"fmt"
	"math"
)

// Place is a place in the list: a minute of Unix time, and a partition and a record there.
type Place struct {
	Minute    int64
	Partition int
	Seq       uint64
	Index     uint32
}

// String is the cursor of a place.
func (p Place) String() string {
	return fmt.Sprintf("@%d.%d.%d.%d", p.Minute, p.Partition, p.Seq, p.Index)
}

// Parse is the place that a cursor spells, the first one if it is empty.
func Parse(cursor string) (p Place, ok bool) {
	if cursor == "" {
		return p, true
	}
	_, err := fmt.Sscanf(cursor, "@%d.%d.%d.%d", &p.Minute, &p.Partition, &p.Seq, &p.Index)
	return p, err == nil && p.String() == cursor && p.Minute >= 0 && p.Minute <= math.MaxInt32 && p.Partition >= 0
}

// Minute is how many tasks are due in one.
type Minute struct{ Minute, Tasks int64 }

// Ask is what the shell asks.
type Ask uint8

// The questions.
const (
	// Count asks all partitions how many tasks each of the minutes From to Until has: Counted.
	Count Ask = iota
	// Whole asks all partitions for the tasks of the minutes From to Until: WholeRead.
	Whole
	// Part asks the partition of At for up to Limit tasks of its minute, from there on: PartRead.
	Part
	// End says that the page is complete. Next is the cursor of the page after it; empty = the list ends there.
	End
)

// Step is one question. Until is not asked for itself.
type Step struct {
	Ask         Ask
	From, Until int64
	At          Place
	Limit       int
	Next        string
}

// Page is one page on its way.
type Page struct {
	limit, partitions int
	until             int64
	// minutes are the first ones that have tasks, of which n are asked for at once.
	minutes []Minute
	n       int
	// tasks are how many the page has.
	tasks int
	step  Step
}

// Begin begins the page of the minutes before until that begins at a place.
func Begin(from Place, until int64, limit, partitions int) *Page {
	p := &Page{limit: limit, partitions: partitions, until: until, step: Step{Ask: Count, From: from.Minute, Until: until}}
	if from.Partition > 0 || from.Seq > 0 {
		p.part(from)
	}
	return p
}

// Step is what to ask now.
func (p *Page) Step() Step { return p.step }

// Counted takes in the minutes that have tasks, in order: the first ones, as many as a page has tasks.
func (p *Page) Counted(minutes []Minute) {
	if p.minutes = minutes; len(minutes) == 0 {
		p.end("")
		return
	}
	for sum := int64(0); p.n < len(minutes); p.n++ {
		if sum += minutes[p.n].Tasks; sum > int64(p.limit) {
			break
		}
	}
	p.whole()
}

// whole asks for the first n minutes, or for the first one in parts.
func (p *Page) whole() {
	first := p.minutes[0].Minute
	if p.n == 0 {
		p.part(Place{Minute: first})
		return
	}
	p.step = Step{Ask: Whole, From: first, Until: p.minutes[p.n-1].Minute + 1}
}

// WholeRead takes in how many tasks were found, that all of those before a minute were, and whether they fit into an answer. It returns whether they are the page.
func (p *Page) WholeRead(tasks int, before int64, fit bool) bool {
	switch last := p.minutes[p.n-1].Minute; {
	case before == p.minutes[0].Minute: // there is too much to read
		p.n = 0
	case tasks > p.limit || !fit:
		p.n /= 2
	case before <= last || p.n < len(p.minutes) || p.n == p.limit: // of more minutes than the limit a partition says nothing
		p.end(p.behind(before - 1))
		return true
	default:
		p.end("")
		return true
	}
	p.whole()
	return false
}

// part asks for a part of a minute, unless the page is full.
func (p *Page) part(at Place) {
	switch left := p.limit - p.tasks; {
	case at.Partition >= p.partitions:
		p.end(p.behind(at.Minute))
	case left <= 0:
		p.end(at.String())
	default:
		p.step = Step{Ask: Part, At: at, Limit: left}
	}
}

// PartRead takes in how many tasks of a part were found, whether they fit into an answer with those before, and where the partition goes on in the minute, if it does. It returns
// whether they are on the page.
func (p *Page) PartRead(tasks int, fit bool, goesOn *Place) bool {
	at := p.step.At
	if p.tasks > 0 && !fit {
		p.end(at.String())
		return false
	}
	p.tasks += tasks
	if goesOn != nil {
		p.end(Place{at.Minute, at.Partition, goesOn.Seq, goesOn.Index}.String())
	} else {
		p.part(Place{Minute: at.Minute, Partition: at.Partition + 1})
	}
	return true
}

func (p *Page) end(next string) { p.step = Step{Ask: End, Next: next} }

// behind is the cursor of what is due after a minute; empty = the list ends there.
func (p *Page) behind(minute int64) string {
	if minute+1 >= p.until {
		return ""
	}
	return Place{Minute: minute + 1}.String()
}
