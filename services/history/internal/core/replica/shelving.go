package replica

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// noteDeep notes that the end of a line may have to go to the shelf.
func (r *Replica) noteDeep(l *orderLine) {
	if len(l.places) > r.cfg.LineTasks || l.parked() {
		if r.deep == nil {
			r.deep = make(map[*orderLine]bool)
		}
		r.deep[l] = true
	}
}

// parked tells whether the first task of the line blocks it, and has all behind it go to the shelf.
func (l *orderLine) parked() bool {
	e := l.first()
	return e != nil && e.Order().Blocked && e.Order().Parks
}

// noteBlocked looks at what follows for its line if e blocks it, or does no more.
func (r *Replica) noteBlocked(e *Entry) {
	if o := e.Order(); o == nil || r.replay != nil || !o.Blocked && len(r.pages) == 0 {
		return // who enters a long line has noted that
	}
	l := e.line()
	if l == nil || l.first() != e {
		return
	}
	r.noteDeep(l)
	r.refill(l)
}

// refill has the first page of a line read if little is left in front of it, and that moves on.
func (r *Replica) refill(l *orderLine) {
	if len(l.pages) == 0 {
		return
	}
	p := l.pages[0]
	e := l.first()
	if e != nil && e.Order().Blocked {
		return
	}
	front, _ := slices.BinarySearchFunc(l.places, p.first, orderPlace.compare)
	if front < max(1, r.cfg.LineTasks/2) {
		r.wantPage(p)
		p.due = true
	}
}

// shelve begins to write a page, if a domain holds much of the window and a line of it is long, or if a line is parked: of the domain that has the fewest
// pages, of its longest such run of tasks the end.
func (r *Replica) shelve(now Now, fx *Effects) {
	if r.replay != nil || r.draining || r.shelving || len(r.deep) == 0 || now.MS < r.shelveAt {
		return
	}
	run := r.nextRun()
	if len(run) == 0 {
		r.shelveAt = now.MS + shelveEveryMS
		return
	}
	size, n := 0, 0
	for n < len(run) && n < r.cfg.PageTasks {
		if size += run[len(run)-1-n].e.Footprint(); n > 0 && size > pageBytesMax {
			break
		}
		n++
	}
	for _, place := range run[len(run)-n:] {
		e := place.e
		e.proposed |= 1 << taskstate.Carried
		state := e.Task
		state.Steps = slices.Clone(e.Steps)
		fx.Shelve = append(fx.Shelve, Proposal{Kind: taskstate.Carried, ID: e.ID, Domain: e.Domain, Fence: ids.Token{Position: e.Position}, Carried: &state, AsOf: r.eventAt})
	}
	r.shelving = true
	fx.Counts.PagesWritten++
}

// nextRun is what goes to the shelf next; nil = nothing does. No domain takes more pages than it leaves free, so there are always some for others.
func (r *Replica) nextRun() (run []orderPlace) {
	pages := make(map[string]int)
	for _, p := range r.pages {
		pages[p.key.domain]++
	}
	free := r.cfg.Pages - len(r.pages)
	before := func(a, b []orderPlace) bool {
		return cmp.Or(cmp.Compare(pages[a[0].e.Domain], pages[b[0].e.Domain]), cmp.Compare(len(b), len(a)), a[0].compare(b[0])) < 0
	}
	for l := range r.deep {
		if len(l.places) == 0 || len(l.places) <= r.cfg.LineTasks && !l.parked() {
			delete(r.deep, l)
			continue
		}
		if own := r.shelfRun(l); len(own) > 0 && pages[own[0].e.Domain] < free && (len(run) == 0 || before(own, run)) {
			run = own
		}
	}
	return run
}

// shelveEveryMS is how soon it is looked again whether there is something to shelve.
const shelveEveryMS = 50

// shelfRun is the longest run of tasks of a line, next to each other, that may go to the shelf.
func (r *Replica) shelfRun(l *orderLine) (longest []orderPlace) {
	key := orderKeyOf(l.places[0].e)
	parked := l.parked()
	if !parked && !r.presses(key.domain) {
		return nil
	}
	keep, least := r.cfg.LineTasks, max(1, r.cfg.LineTasks/4)
	if len(l.pages) > 0 {
		keep += r.cfg.PageTasks // a page that has just come stays
	}
	if parked {
		keep = 1
		if least = 1; len(l.pages) > 0 {
			least = max(1, r.cfg.PageTasks/4)
		}
	}
	if r.holds(key.domain, 2) { // then others wait for room: nothing stays, however short the run is
		keep, least = min(keep, r.cfg.LineTasks), 1
	}
	from := 0
	for i := 0; i <= len(l.pages) && from < len(l.places); i++ {
		to := len(l.places)
		if i < len(l.pages) {
			to, _ = slices.BinarySearchFunc(l.places, l.pages[i].first, orderPlace.compare)
		}
		begin := from
		if i == 0 {
			begin = min(to, from+keep)
		}
		if run := r.shelvable(l.places[begin:to]); len(run) >= least && len(run) > len(longest) {
			longest = run
		}
		from = to
	}
	return longest
}

// shelvable is the last run of places whose tasks may go to the shelf. One that a stay waits for ends soon.
func (r *Replica) shelvable(places []orderPlace) []orderPlace {
	may := func(e *Entry) bool {
		return e != nil && e.AwaitsTurn() && e.proposed == 0 && !e.waits && r.held[e.ID] == nil
	}
	to := len(places)
	for to > 0 && !may(places[to-1].e) {
		to--
	}
	from := to
	for from > 0 && may(places[from-1].e) {
		from--
	}
	return places[from:to]
}

// presses tells whether a domain holds so much of the window that the ends of its lines go to the shelf.
func (r *Replica) presses(domain string) bool { return r.holds(domain, 4) }

// holds tells whether a domain holds the n-th part of the window.
func (r *Replica) holds(domain string, n int) bool {
	a := r.accounts[Queue{ids.LaneKeyed, domain}]
	return a != nil && (n*a.tasks >= r.cfg.WindowTasks || int64(n)*a.bytes >= r.cfg.WindowBytes)
}

// readPages asks for pages that are wanted: of the domains of which the fewest are being read, those wanted for longest.
func (r *Replica) readPages(fx *Effects) {
	if r.replay != nil || len(r.pages) == 0 {
		return
	}
	sooner := func(of map[string]int, a, b *page) bool {
		return cmp.Or(cmp.Compare(of[a.key.domain], of[b.key.domain]), cmp.Compare(a.wish, b.wish), cmp.Compare(a.seq, b.seq)) < 0
	}
	reading, of := 0, make(map[string]int)
	for _, p := range r.pages {
		if p.asked {
			reading++
			of[p.key.domain]++
		}
	}
	for ; reading < readsMax; reading++ {
		var next *page
		for _, p := range r.pages {
			if p.wanted && p.away && !p.asked && (next == nil || sooner(of, p, next)) {
				next = p
			}
		}
		if next == nil {
			return
		}
		next.asked = true
		of[next.key.domain]++
		fx.Pages = append(fx.Pages, next.seq)
	}
}

// WantedPages are those that must be given before a takeover is over.
func (r *Replica) WantedPages() (all []uint64) {
	for _, p := range r.sortedPages() {
		if p.away && p.wanted {
			all = append(all, p.seq)
		}
	}
	return all
}

// tidyShelf looks at what time does to pages.
func (r *Replica) tidyShelf(now Now) {
	for _, p := range r.sortedPages() {
		switch {
		case !p.away:
			r.dropUnneeded(p)
			r.putAway(p)
		case p.lapsesAt > 0 && now.MS >= p.lapsesAt:
			r.wantPage(p)
			p.due = true
		}
	}
}

// pagesOf notes in a checkpoint which pages a takeover needs, and which the log may forget: none that a takeover may read of again, and rely on while
// a purge of an owner before it comes late.
func (r *Replica) pagesOf(cp *Checkpoint) {
	cp.shelf, cp.dead = min(r.lastPage, cp.Floor), nil
	for _, seq := range r.deadPages {
		if seq <= cp.Floor {
			cp.dead = append(cp.dead, seq)
		}
	}
	for i, p := range r.sortedPages() {
		if i == 0 {
			cp.shelf = min(cp.shelf, p.seq-1)
		}
		if p.away || p.needed > 0 && cp.Floor > p.asOf {
			cp.Pages = append(cp.Pages, PageRef{p.seq, p.away})
		}
	}
}

// Shelved is how many tasks are on the shelf and not in memory, of how many pages.
func (r *Replica) Shelved() (tasks, pages int) { return r.shelved, len(r.pages) }

// ShelfPage is a page that is away, and the lowest and the highest id of its tasks.
type ShelfPage struct {
	Seq             uint64
	Lowest, Highest ids.TaskID
}

// ShelfPages are the pages away that may have tasks of a domain, "" = of any, and of an order key if one is named: those with the newest tasks first.
func (r *Replica) ShelfPages(domain, key string) (all []ShelfPage) {
	for _, p := range r.sortedPages() {
		if p.away && (domain == "" || p.key.domain == domain) && (key == "" || p.key.key == key) {
			all = append(all, ShelfPage{p.seq, p.lowest, p.highest})
		}
	}
	slices.SortStableFunc(all, func(a, b ShelfPage) int { return bytes.Compare(b.Highest[:], a.Highest[:]) })
	return all
}

// MayHave tells whether a task may be on the page.
func (p *ShelfPage) MayHave(id ids.TaskID) bool {
	return bytes.Compare(p.Lowest[:], id[:]) <= 0 && bytes.Compare(id[:], p.Highest[:]) <= 0
}

// looksBefore tells whether a page in front of a place is to be read: an event that waits for that may have ended its tasks before one
// began that of the place.
func (l *orderLine) looksBefore(at orderPlace) bool {
	return slices.ContainsFunc(l.pages, func(p *page) bool { return p.wanted && p.first.compare(at) < 0 })
}

// checkPages looks at the pages of a line that are away.
func (l *orderLine) checkPages(key orderKey) error {
	for i, p := range l.pages {
		if !p.away || p.key != key || i > 0 && l.pages[i-1].last.compare(p.first) >= 0 {
			return fmt.Errorf("page %d is in the line of key %v at %d", p.seq, key, i)
		}
		from, _ := slices.BinarySearchFunc(l.places, p.first, orderPlace.compare)
		to, found := slices.BinarySearchFunc(l.places, p.last, orderPlace.compare)
		if found {
			to++
		}
		if from != to {
			return fmt.Errorf("%d tasks of key %v lie on page %d, which is away", to-from, key, p.seq)
		}
	}
	return nil
}

// checkShelf compares the pages with the tasks.
func (r *Replica) checkShelf() error {
	needed, waiting := make(map[*page]int), make(map[*page]int)
	for e, p := range r.relying {
		needed[p]++
		if !e.pinned || e.left || r.tasks[e.ID] != e {
			return fmt.Errorf("task %s relies on page %d, and is not pinned", e.ID, p.seq)
		}
	}
	for _, w := range r.early.byID {
		for _, h := range w.waiting {
			if h.page != nil {
				waiting[h.page]++
			}
		}
	}
	away, inLines := 0, 0
	for seq, p := range r.pages {
		if p.seq != seq || p.needed != needed[p] || p.waiting != waiting[p] || p.away && p.needed > 0 {
			return fmt.Errorf("page %d is needed by %d tasks, %d wait, it counts %d and %d", p.seq, needed[p], waiting[p], p.needed, p.waiting)
		}
		delete(needed, p)
		if !p.away {
			continue
		}
		away += p.tasks
		inLines++
	}
	for _, l := range r.keys {
		inLines -= len(l.pages)
	}
	if len(needed) > 0 || away != r.shelved || inLines != 0 {
		return fmt.Errorf("%d tasks are away, %d are counted; %d pages are in no line, %d needed ones are unknown", away, r.shelved, inLines, len(needed))
	}
	return nil
}
