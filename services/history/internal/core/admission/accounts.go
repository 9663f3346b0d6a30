package admission

import (
	"cmp"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Config bounds what is held of one lane, and of domains what comes in with their full weight.
type Config struct {
	WindowTasks int
	WindowBytes int64
	// FullWeight is that of a domain, which may change at any time; nil = of none.
	FullWeight func(domain string) FullWeight
}

// windows are what tasks take of the window of each lane.
type windows struct {
	cfg Config
	// rooms are what those of the lanes take. pools is what domains take beside them that have queues. Of each domain a window counts,
	// and what it has past domainWindows: one with many queues takes no more from others than one with one.
	rooms, pools [ids.Lanes]room
	queues       map[Queue]*queue
	// domains are those that hold something, or have a queue; last is the account that was used last.
	domains map[domainAt]*domain
	last    *account
}

// domainOf is a domain in a lane.
func (x *windows) domainOf(at domainAt) *domain {
	d := x.domains[at]
	if d == nil {
		d = &domain{domainAt: at}
		x.domains[at] = d
	}
	return d
}

// accountOf is the account of a tasklist in a lane.
func (x *windows) accountOf(at domainAt, tasklist string) *account {
	if a := x.last; a != nil && a.tasklist == tasklist && a.domain.domainAt == at {
		return a
	}
	d := x.domainOf(at)
	a := d.accounts[tasklist]
	if a == nil {
		a = &account{tasklist: tasklist, domain: d}
		if len(d.queues) > 0 {
			a.queue = x.queueOf(Queue{at.Lane, ids.PlaceOf(at.Name, tasklist)})
		}
		if d.accounts == nil {
			d.accounts = make(map[string]*account, 1)
		}
		d.accounts[tasklist] = a
	}
	x.last = a
	return a
}

// queueOf is the queue that has what is filed at a place; nil = the lane has it.
func (x *windows) queueOf(at Queue) *queue {
	for ; len(x.queues) > 0 && at.Place != ""; at.Place = at.Place.Parent() {
		if q := x.queues[at]; q != nil {
			return q
		}
	}
	return nil
}

// dropAccount forgets an account that holds nothing.
func (x *windows) dropAccount(a *account) {
	if x.last == a {
		x.last = nil
	}
	delete(a.domain.accounts, a.tasklist)
	x.dropDomain(a.domain)
}

// dropDomain forgets a domain that holds nothing.
func (x *windows) dropDomain(d *domain) {
	if len(d.accounts) == 0 && len(d.queues) == 0 {
		delete(x.domains, d.domainAt)
	}
}

// charge makes an account take more, or less.
func (x *windows) charge(a *account, tasks int, bytes int64) {
	a.add(tasks, bytes)
	if a.queue == nil {
		x.rooms[a.domain.Lane].add(tasks, bytes)
		return
	}
	a.queue.room.add(tasks, bytes)
	x.chargeApart(a.domain, tasks, bytes)
}

// chargeApart makes the queues of a domain take more, or less.
func (x *windows) chargeApart(d *domain, tasks int, bytes int64) {
	before := x.inPool(d)
	d.apart.add(tasks, bytes)
	after := x.inPool(d)
	x.pools[d.Lane].add(after.tasks-before.tasks, after.bytes-before.bytes)
}

// domainWindows bounds what the queues of a domain hold together, in windows: past it only messages that domains share bring much more.
const domainWindows = 4

// inPool is what the queues of a domain take of the pool.
func (x *windows) inPool(d *domain) room {
	const free = domainWindows - 1
	return room{
		max(min(d.apart.tasks, x.cfg.WindowTasks), d.apart.tasks-free*x.cfg.WindowTasks),
		max(min(d.apart.bytes, x.cfg.WindowBytes), d.apart.bytes-free*x.cfg.WindowBytes),
	}
}

// takesWindows tells whether the queues of a domain take so many windows.
func (x *windows) takesWindows(d *domain, n int) bool {
	return d.apart.tasks >= n*x.cfg.WindowTasks || d.apart.bytes >= int64(n)*x.cfg.WindowBytes
}

// move gives what an account holds to a queue, or to the lane.
func (x *windows) move(a *account, to *queue) {
	tasks, bytes := a.tasks, a.bytes
	x.charge(a, -tasks, -bytes)
	a.queue = to
	x.charge(a, tasks, bytes)
}

// Charge is what a task takes of a window.
type Charge struct {
	Lane             ids.Lane
	Domain, Tasklist string
	// Shared: its message is one that domains share.
	Shared bool
	// Bytes is what it takes; 0 = nothing.
	Bytes int32
}

// Charge takes what a task takes now in place of what it took, both of one tasklist.
func (x *windows) Charge(task Charge, before int32) {
	if task.Bytes == before {
		return
	}
	a := x.accountOf(domainAt{task.Lane, task.Domain}, task.Tasklist)
	tasks := 0
	switch {
	case before == 0:
		tasks = 1
	case task.Bytes == 0:
		tasks = -1
	}
	x.charge(a, tasks, int64(task.Bytes)-int64(before))
	if task.Shared {
		a.domain.shared += tasks
	}
	if a.tasks == 0 {
		x.dropAccount(a)
	}
}

// TaskBytes is what a task of a domain takes of the windows on average; 0 = none takes anything.
func (x *windows) TaskBytes(domain string) int64 {
	var all room
	for lane := range ids.Lane(ids.Lanes) {
		if d := x.domains[domainAt{lane, domain}]; d != nil {
			for _, a := range d.accounts {
				all.add(a.tasks, a.bytes)
			}
		}
	}
	if all.tasks == 0 {
		return 0
	}
	return all.bytes / int64(all.tasks)
}

// halvingsMax is how often a window is halved for what others hold.
const halvingsMax = 10

// windowBeside is the window that is left beside so much that others hold which are split off: it is halved for each
// window of that, and after halvingsMax there is none. So a thousand domains that flood one after the other hold as
// much as eleven windows, and so does what one has in messages that domains share.
func (x *windows) windowBeside(tasks int, bytes int64) (int, int64) {
	halvings := max(tasks/x.cfg.WindowTasks, int(bytes/x.cfg.WindowBytes))
	if halvings > halvingsMax {
		return 0, 0
	}
	return max(1, x.cfg.WindowTasks>>halvings), max(1, x.cfg.WindowBytes>>halvings)
}

// laneWindow is the window of a lane.
func (x *windows) laneWindow(lane ids.Lane) (tasks int, bytes int64) {
	return x.windowBeside(x.pools[lane].tasks, x.pools[lane].bytes)
}

// queueWindow is the window of a queue: what other domains hold of the pool lessens it, and what the other queues of its own do.
func (x *windows) queueWindow(q *queue) (tasks int, bytes int64) {
	pool, own, d := x.pools[q.Lane], x.inPool(q.domain), q.domain
	return x.windowBeside(pool.tasks-own.tasks+d.apart.tasks-q.room.tasks, pool.bytes-own.bytes+d.apart.bytes-q.room.bytes)
}

// Room tells whether the window of a lane has room, so that its next message may be read (I7).
func (x *windows) Room(lane ids.Lane) bool {
	tasks, bytes := x.laneWindow(lane)
	return x.rooms[lane].tasks < tasks && x.rooms[lane].bytes < bytes
}

// queueRoom tells whether a queue has room. A domain's has none either while all queues of the domain take domainWindows: its messages may bring more
// tasks of tasklists that are split off.
func (x *windows) queueRoom(q *queue) bool {
	tasks, bytes := x.queueWindow(q)
	return q.room.tasks < tasks && q.room.bytes < bytes && (q.Place.Tasklist() != "" || !x.takesWindows(q.domain, domainWindows))
}

// unreadTasks is how many tasks an unread message is taken for; opening it would cost more.
const unreadTasks = 100

// Shareable is how much may be filed in messages of the most urgent lane whatever its priority, tasks and their bytes,
// while so many messages of that lane are unread. It leaves half of the lane's window to the tasks that belong there:
// past it an urgent task could have to wait on disk behind others (I7).
func (x *windows) Shareable(unread int64) (tasks, bytes int64) {
	mostTasks, mostBytes := x.laneWindow(ids.LaneFirst)
	w := &x.rooms[ids.LaneFirst]
	tasks = int64(mostTasks/2-w.tasks) - unread*unreadTasks
	bytes = mostBytes/2 - w.bytes
	if tasks <= 0 || bytes <= 0 {
		return 0, 0
	}
	return tasks, bytes
}

// weight is a part of a window, in thousandths.
func (x *windows) weight(r room) int64 {
	return max(int64(r.tasks)*1000/int64(x.cfg.WindowTasks), r.bytes*1000/x.cfg.WindowBytes)
}

// sorted puts those first that take most.
func (x *windows) sorted(all []claim) []claim {
	slices.SortFunc(all, func(a, b claim) int {
		return cmp.Or(cmp.Compare(x.weight(b.room), x.weight(a.room)), cmp.Compare(b.tasks, a.tasks), a.compare(b.Queue))
	})
	return all
}

// inLane are the domains that take something of a lane's window.
func (x *windows) inLane(lane ids.Lane) (all []claim) {
	for _, d := range x.domains {
		c := claim{Queue: Queue{lane, ids.PlaceOf(d.Name, "")}}
		for _, a := range d.accounts {
			if d.Lane == lane && a.queue == nil {
				c.add(a.tasks, a.bytes)
			}
		}
		if c.tasks > 0 {
			all = append(all, c)
		}
	}
	return x.sorted(all)
}

// largestList is the tasklist of a domain that takes most of what the lane has of the domain, or a queue of it; and whether it is to be split off. The domain
// may have listsMax split off, and so many can only be all that fills the window if the largest takes as large a part of it at least.
func (x *windows) largestList(at domainAt, in *queue) (Queue, bool) {
	d := x.domains[at]
	if d == nil || at.Lane == ids.LaneKeyed || d.lists() >= listsMax {
		return Queue{}, false
	}
	var all []claim
	var whole room
	for tasklist, a := range d.accounts {
		if a.queue == in {
			all = append(all, claim{Queue{at.Lane, ids.PlaceOf(at.Name, tasklist)}, a.room})
			whole.add(a.tasks, a.bytes)
		}
	}
	if len(all) == 0 {
		return Queue{}, false
	}
	most := x.sorted(all)[0]
	return most.Queue, listsMax*x.weight(most.room) >= x.weight(whole)
}

// apartMax bounds the places that frontends must store apart. It has all that are split off: what one of them goes on
// to have in messages that others share is read whatever the pool holds, and takes the lane's window from everybody.
const apartMax = queuesMax

// sharersMin is how many domains may fill a lane with tasks of shared messages, each with an equal part, before one is too large to share. A frontend
// stores so many messages apart with each flush: if it did so for a thousand small domains, each of their tasks would cost a sync of the log.
const sharersMin = 64

// Apart are the places whose tasks are to be filed there, however few: those that are split off, so that no
// more of them comes with others', and the domains that hold more tasks of shared messages than there is room left in a lane, and more than
// a part of the lane. They are sorted.
func (x *windows) Apart() []ids.Place {
	seen := make(map[ids.Place]bool)
	for at := range x.queues {
		seen[at.Place] = true
	}
	var shared []claim
	for _, d := range x.domains {
		tasks, _ := x.laneWindow(d.Lane)
		if d.Lane == ids.LaneFirst {
			tasks /= 2
		}
		if d.shared > max(x.cfg.WindowTasks/sharersMin, tasks-x.rooms[d.Lane].tasks) {
			shared = append(shared, claim{Queue{d.Lane, ids.PlaceOf(d.Name, "")}, room{tasks: d.shared}})
		}
	}
	for _, c := range x.sorted(shared) {
		if len(seen) < apartMax {
			seen[c.Place] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Full tells whether a lane has no room, or the pool beside it, so that what has ended there should leave: ended are all that have. A quarter of the
// window is enough, as far as domains that are split off leave it one, and anything if its bytes are full: few fat tasks fill those.
func (x *windows) Full(ended int) bool {
	full := func(w *room, tasks int, bytes int64) bool {
		return w.bytes >= bytes || w.tasks >= tasks && ended >= tasks/4
	}
	for lane := range x.rooms {
		tasks, bytes := x.laneWindow(ids.Lane(lane))
		if full(&x.rooms[lane], tasks, bytes) || full(&x.pools[lane], x.cfg.WindowTasks, x.cfg.WindowBytes) {
			return true
		}
	}
	return false
}
