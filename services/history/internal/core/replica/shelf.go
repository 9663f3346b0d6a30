package replica

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

const (
	// lineTasks is how many tasks of a line stay in memory by default, pageTasks how many a page holds.
	lineTasks, pageTasks = 100, 500
	// pageBytesMax bounds the tasks of a page as they are in memory; stored they are smaller.
	pageBytesMax = 700 << 10
	// pagesMax bounds the pages of a partition by default. Past it no more tasks go to the shelf.
	pagesMax = 2000
	// readsMax is how many pages are read at a time.
	readsMax = 4
)

// page is tasks of one order key, next to each other in its line, in the message of the shelf at seq. If it is away they are not in memory.
type page struct {
	seq uint64
	// asOf is the last event that its tasks have seen.
	asOf uint64
	// tasks is how many it has; needed how many of those in memory come back by it alone in a takeover, waiting how many of
	// its records wait for another page.
	tasks, needed, waiting int
	// fresh: it has been written to go away, and has not so far.
	fresh bool
	away  bool
	key   orderKey
	// first and last are the places of one that is away in the line of its key.
	first, last orderPlace
	// lowest and highest are ids of its tasks.
	lowest, highest ids.TaskID
	// lapsesAt is when the first of its tasks expires, Unix ms; 0 = none does.
	lapsesAt int64
	counts   []pageCount
	// wanted: it is to be read, since the turn wish. due: its tasks are to come back, whatever they are. asked: it is being read.
	wanted, due, asked bool
	wish               uint64
}

// wantPage has a page read.
func (r *Replica) wantPage(p *page) {
	if !p.wanted {
		p.wanted, p.wish = true, r.turn
	}
}

// pageCount is how many tasks of a page count in a state in a column.
type pageCount struct {
	column *column
	state  taskstate.State
	tasks  int
}

// PageRef names a page that a takeover needs.
type PageRef struct {
	Seq  uint64
	Away bool
}

// has tells whether a place is on the page, or its task has ended.
func (p *page) has(key orderKey, at orderPlace) bool {
	return p.away && p.key == key && p.first.compare(at) <= 0 && at.compare(p.last) <= 0
}

// mayHave tells whether an event may be about a task of the page, which has not seen it, and has not been looked at for it. A grab names no domain: it is
// void unless it names the place of its task, so one of another lane's need not wait for what may be another domain's page.
func (p *page) mayHave(h *held) bool {
	if at := h.ev.Fence.Position; h.first() && (at.Lane() != ids.LaneKeyed || at.Seq() < p.first.seq || p.last.seq < at.Seq()) {
		return false
	}
	return p.away && h.seq > p.asOf && (h.ev.Domain == "" || h.ev.Domain == p.key.domain) &&
		bytes.Compare(p.lowest[:], h.ev.ID[:]) <= 0 && bytes.Compare(h.ev.ID[:], p.highest[:]) <= 0 && !slices.Contains(h.looked, p.seq)
}

// sortedPages are all pages, in log order.
func (r *Replica) sortedPages() []*page {
	if len(r.pages) == 0 {
		return nil
	}
	all := make([]*page, 0, len(r.pages))
	for _, p := range r.pages {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *page) int { return int(int64(a.seq) - int64(b.seq)) })
	return all
}

// onShelf tells whether a task with an order key lies at a place of a page that is away: it is on that, or has ended, and is in the archive.
func (r *Replica) onShelf(e *Entry) *page {
	if len(r.pages) == 0 || e.Order() == nil {
		return nil
	}
	l := r.keys[orderKeyOf(e)]
	if l == nil {
		return nil
	}
	at, _ := slices.BinarySearchFunc(l.pages, placeOf(e), func(p *page, at orderPlace) int { return p.last.compare(at) })
	if at == len(l.pages) || !l.pages[at].has(orderKeyOf(e), placeOf(e)) {
		return nil
	}
	return l.pages[at]
}

// lookFirst lets an event wait whose task may be on a page that is away, and has that read. What that has seen is void.
func (r *Replica) lookFirst(h *held, fx *Effects) bool {
	if len(r.pages) == 0 {
		return false
	}
	if h.carried != nil {
		if p := r.onShelf(h.carried.Entry); p != nil && h.seq <= p.asOf {
			r.conclude(h, taskstate.Verdict{}, fx)
			return true
		}
	}
	if !r.wantPages(h) {
		return false
	}
	r.wait(h)
	return true
}

// wantPages has the pages read that are to be looked at before an event can be decided, and tells whether there are any.
func (r *Replica) wantPages(h *held) (some bool) {
	if h.carried != nil {
		p := r.onShelf(h.carried.Entry)
		if p != nil {
			r.wantPage(p)
		}
		return p != nil
	}
	for _, p := range r.pages {
		if p.mayHave(h) {
			r.wantPage(p)
			some = true
		}
	}
	return some
}

// mayLook tells whether an event waits for a page.
func (r *Replica) mayLook(h *held) bool {
	if h.carried != nil {
		return r.onShelf(h.carried.Entry) != nil
	}
	return r.mayBeAway(h)
}

// mayBeAway tells whether there is a page to be looked at before an event can be decided.
func (r *Replica) mayBeAway(h *held) bool {
	for _, p := range r.pages {
		if p.mayHave(h) {
			return true
		}
	}
	return false
}

// pageRead takes in that a page is written. For each of its tasks it is a carried record.
func (r *Replica) pageRead(in *Events, now Now, fx *Effects) {
	r.eventAt = in.Seq
	r.heard(in.At, now)
	r.meter.add(in.Seq, 1, in.Bytes)
	if r.pageIsOld(in.Page) {
		for _, c := range in.OnPage {
			if e := r.tasks[c.Entry.ID]; e != nil {
				e.proposed &^= 1 << taskstate.Carried
			}
		}
		return
	}
	r.saidPage, r.lastPage = in.Page, max(r.lastPage, in.Page)
	if len(in.OnPage) == 0 {
		return
	}
	p := &page{seq: in.Page, asOf: in.OnPage[0].AsOf, tasks: len(in.OnPage), fresh: true, key: orderKeyOfCarried(in.OnPage[0])}
	if r.pages == nil {
		r.pages = make(map[uint64]*page)
	}
	r.pages[p.seq] = p
	for i, c := range in.OnPage {
		ev := taskstate.Event{Kind: taskstate.Carried, ID: c.Entry.ID, Fence: ids.Token{Position: c.Entry.Position}, Domain: c.Entry.Domain}
		h := &held{ev: &ev, seq: in.Seq, at: in.At, carried: c, i: i, page: p, replayed: r.replay != nil}
		r.decide(h, r.tasks[h.ev.ID], now, fx)
	}
	r.dropUnneeded(p)
	if r.replay == nil {
		r.putAway(p)
	}
}

// pageIsOld tells whether an event says again that a page is written, or says it late: an append of unknown outcome is repeated, and an owner that was
// overtaken may have had one under way. A later page is known by then, so this one may be deleted at any moment, and nothing must come to rely on it.
func (r *Replica) pageIsOld(seq uint64) bool {
	if r.replay == nil {
		return seq <= r.lastPage
	}
	return seq <= r.saidPage || slices.ContainsFunc(r.base.Pages, func(p PageRef) bool { return p.Seq == seq })
}

// relyOn notes which page brings e back in a takeover; nil = none does.
func (r *Replica) relyOn(e *Entry, p *page) {
	old := r.relying[e]
	switch {
	case old == p:
		return
	case p == nil:
		delete(r.relying, e)
	default:
		if r.relying == nil {
			r.relying = make(map[*Entry]*page)
		}
		r.relying[e] = p
		p.needed++
	}
	if old != nil {
		old.needed--
		r.dropUnneeded(old)
	}
}

// seenByPage tells whether the record by which e came in a takeover has seen an event.
func (r *Replica) seenByPage(e *Entry, h *held) bool {
	p := r.relying[e]
	return p != nil && h.seq <= p.asOf
}

// dropUnneeded forgets a page that nothing needs any more.
func (r *Replica) dropUnneeded(p *page) {
	if p.away || p.needed+p.waiting > 0 || r.pages[p.seq] != p {
		return
	}
	delete(r.pages, p.seq)
	r.deadPages = append(r.deadPages, p.seq)
}

// putAway takes the tasks of a page that was just written out of memory, if that is exactly what it says.
func (r *Replica) putAway(p *page) {
	if !p.fresh || p.away || p.needed < p.tasks {
		return
	}
	l, from := r.lineOf(p)
	if l == nil || from == 0 && (len(l.pages) == 0 || l.places[0].compare(l.pages[0].first) < 0) {
		p.fresh = false
		return
	}
	all := l.places[from : from+p.tasks]
	if slices.ContainsFunc(all, func(place orderPlace) bool { return r.held[place.e.ID] != nil }) {
		p.fresh = false // an event behind this one has ended that task: the page would be read again at once
		return
	}
	key := orderKeyOf(all[0].e)
	if r.unarchived(key) {
		return // a later owner could not tell what has ended from what is on the page
	}
	r.fold(p, l, from)
}

// lineOf finds the line of a page and where its tasks are in it; nil = they are not as they were when it was written.
func (r *Replica) lineOf(p *page) (*orderLine, int) {
	for e, of := range r.relying {
		if of != p {
			continue
		}
		l := e.line()
		if l == nil {
			return nil, 0
		}
		at, found := l.find(e)
		for found && at > 0 && l.places[at-1].e != nil && r.relying[l.places[at-1].e] == p {
			at--
		}
		if !found || at+p.tasks > len(l.places) {
			return nil, 0
		}
		for _, place := range l.places[at : at+p.tasks] {
			if place.e == nil || r.relying[place.e] != p || place.e.lastEvent > p.asOf || !place.e.AwaitsTurn() || place.e.waits {
				return nil, 0
			}
		}
		return l, at
	}
	return nil, 0
}

// unarchived tells whether a task of a key has ended and is not known to be in the archive.
func (r *Replica) unarchived(key orderKey) bool {
	ended := func(e *Entry) bool { return !e.left && e.Order() != nil && orderKeyOf(e) == key }
	return slices.ContainsFunc(r.archive.queue, ended) || slices.ContainsFunc(r.archive.busy, ended)
}

// fold keeps of the tasks of a page, which lie in a line from an index on, only what the page says of them all.
func (r *Replica) fold(p *page, l *orderLine, from int) {
	all := l.places[from : from+p.tasks]
	p.key, p.first, p.last = orderKeyOf(all[0].e), all[0], all[len(all)-1]
	p.first.e, p.last.e = nil, nil
	p.lowest, p.highest, p.lapsesAt = all[0].e.ID, all[0].e.ID, 0
	for _, place := range all {
		e := place.e
		if bytes.Compare(e.ID[:], p.lowest[:]) < 0 {
			p.lowest = e.ID
		}
		if bytes.Compare(e.ID[:], p.highest[:]) > 0 {
			p.highest = e.ID
		}
		if at := e.LapsesAt(); at > 0 && (p.lapsesAt == 0 || at < p.lapsesAt) {
			p.lapsesAt = at
		}
		p.count(e)
		r.past.add(e) // a copy of its submit may be read late
		r.wake.Remove(e)
		e.left, e.column, e.seat.line = true, nil, nil
		delete(r.relying, e)
		r.charge(e)
		delete(r.pinned, e.ID)
		delete(r.tasks, e.ID)
	}
	l.places = slices.Delete(l.places, from, from+p.tasks)
	l.tidy()
	at, _ := slices.BinarySearchFunc(l.pages, p, func(a, b *page) int { return a.first.compare(b.first) })
	l.pages = slices.Insert(l.pages, at, p)
	p.away, p.fresh, p.needed, p.wanted, p.due, p.asked = true, false, 0, false, false, false
	r.shelved += p.tasks
}

// count notes that e, which goes on counting in its column, is on the page.
func (p *page) count(e *Entry) {
	for i := range p.counts {
		if c := &p.counts[i]; c.column == e.column && c.state == e.counted {
			c.tasks++
			return
		}
	}
	p.counts = append(p.counts, pageCount{e.column, e.counted, 1})
}

// uncount ends what the page counts: its tasks count again themselves.
func (r *Replica) uncountPage(p *page) {
	for _, c := range p.counts {
		c.column.count(c.state, int64(-c.tasks))
		r.fewer(c.column, c.tasks)
	}
	p.counts = nil
}

// Page is a page that was read for the replica, whole.
type Page struct {
	Seq   uint64
	Tasks []*Carried
}

func (*Page) input() {}

// pageFound takes in a page that was asked for; at the beginning of a takeover each that the checkpoint names.
func (r *Replica) pageFound(in *Page, now Now, fx *Effects) {
	p := r.pages[in.Seq]
	switch {
	case p == nil && r.replay != nil:
		r.pageOfBase(in, now, fx)
		return
	case p == nil || !p.away:
		return
	case len(in.Tasks) != p.tasks:
		fx.Halt = fmt.Errorf("page %d of the shelf has %d tasks, there were %d", in.Seq, len(in.Tasks), p.tasks)
		return
	}
	p.asked, p.wanted = false, false
	fx.Counts.PagesRead++
	on := make(map[ids.TaskID]bool, len(in.Tasks))
	due := p.due
	for _, c := range in.Tasks {
		on[c.Entry.ID] = true
		due = due || r.early.byID[c.Entry.ID] != nil || r.held[c.Entry.ID] != nil
	}
	stays := r.heldFor(p, on)
	var others []ids.TaskID
	for _, id := range r.early.ids() {
		if !on[id] && slices.ContainsFunc(r.early.of(id), func(h *held) bool { return p.mayHave(h) || r.ofEnded(p, h) }) {
			others = append(others, id)
		}
	}
	var later []*held
	for _, id := range others {
		for _, h := range r.early.take(id) {
			if r.ofEnded(p, h) { // its task has ended, and is in the archive
				r.conclude(h, taskstate.Verdict{}, fx)
				continue
			}
			h.looked = append(h.looked, p.seq)
			later = append(later, h)
		}
	}
	if due {
		r.bringIn(p, in.Tasks, r.eventAt, now, fx)
	}
	for _, h := range later {
		r.event(h, now, fx)
	}
	for _, id := range stays {
		r.letGo(id, now, fx)
	}
}

// ofEnded tells whether h is a carried record of a task that would be on the page, were it not that it has ended.
func (r *Replica) ofEnded(p *page, h *held) bool {
	return h.carried != nil && h.carried.Entry.Order() != nil && p.has(orderKeyOfCarried(h.carried), placeOf(h.carried.Entry))
}

func orderKeyOfCarried(c *Carried) orderKey { return orderKey{c.Entry.Domain, c.Entry.OrderKey()} }

// pageOfBase takes in a page that the checkpoint of a takeover names. What a later one has comes by that: they are given the newest first.
func (r *Replica) pageOfBase(in *Page, now Now, fx *Effects) {
	at := slices.IndexFunc(r.base.Pages, func(p PageRef) bool { return p.Seq == in.Seq })
	if at < 0 || len(in.Tasks) == 0 {
		return
	}
	if r.pages == nil {
		r.pages = make(map[uint64]*page)
	}
	r.lastPage = max(r.lastPage, in.Seq)
	p := &page{seq: in.Seq, asOf: in.Tasks[0].AsOf, tasks: len(in.Tasks), key: orderKeyOfCarried(in.Tasks[0])}
	r.pages[p.seq] = p
	r.bringIn(p, in.Tasks, max(p.asOf, r.base.Floor), now, fx)
	if !r.base.Pages[at].Away {
		r.dropUnneeded(p)
		return
	}
	l, from := r.lineOf(p)
	if l == nil {
		fx.Halt = fmt.Errorf("page %d of the shelf is not as the checkpoint says", in.Seq)
		return
	}
	r.fold(p, l, from)
}

// bringIn lets the tasks of a page come back, and then what waited for them. They pin what may be about them: nothing up to pin is that they have not seen.
func (r *Replica) bringIn(p *page, tasks []*Carried, pin uint64, now Now, fx *Effects) {
	var l *orderLine
	if p.away {
		l = r.keys[p.key]
		l.pages = slices.DeleteFunc(l.pages, func(o *page) bool { return o == p })
		p.away = false
		r.shelved -= p.tasks
	}
	for _, c := range tasks {
		if early := r.early.of(c.Entry.ID); len(early) > 0 {
			pin = min(pin, early[0].seq-1)
		}
	}
	var came []*Entry
	for _, c := range tasks {
		e := c.Entry
		if r.tasks[e.ID] != nil || r.onShelf(e) != nil {
			continue
		}
		e.pinned, e.pin, e.shared = true, pin, e.Position.Shared()
		e.since, e.lastEvent = c.AsOf, c.AsOf
		r.tasks[e.ID], r.pinned[e.ID] = e, e
		r.relyOn(e, p)
		r.enqueue(e)
		r.cameBefore(e)
		r.carryOut(e, taskstate.Effects{}, 0, now, fx)
		came = append(came, e)
	}
	r.uncountPage(p)
	for _, e := range came {
		for _, h := range r.early.take(e.ID) {
			e.lastEvent = max(e.lastEvent, h.seq)
			r.event(h, now, fx)
		}
	}
	r.dropUnneeded(p)
	switch {
	case l == nil:
	case len(l.places)+len(l.pages) == 0:
		delete(r.keys, p.key)
	default:
		r.moveOn(l, now, fx)
	}
}
