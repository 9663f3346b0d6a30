package admission

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// windows are what tasks take of the window of each lane.
type windows struct {
	cfg Config
	// rooms are what those of the lanes take; pools is what domains that are split off hold beside them.
	rooms, pools [ids.Lanes]room
	// accounts are those that hold something; lastAccount is the one that was used last.
	accounts    map[Queue]*account
	lastAccount *account
}

// room is what tasks take of a window.
type room struct {
	tasks int
	bytes int64
}

// account is what the tasks of one domain take of a lane's window; or, if it is split off, of what those that are split
// off behind the lane hold beside it, the lane's pool.
type account struct {
	Queue
	tasks int
	bytes int64
	// shared counts those of the tasks that lie in messages that domains share.
	shared int
	// queue is not nil if the domain is split off.
	queue *queue
}

// accountOf is the account of a domain in a lane.
func (x *windows) accountOf(at Queue) *account {
	if x.lastAccount != nil && x.lastAccount.Queue == at {
		return x.lastAccount
	}
	a := x.accounts[at]
	if a == nil {
		a = &account{Queue: at}
		x.accounts[at] = a
	}
	x.lastAccount = a
	return a
}

// dropAccount forgets an account that holds nothing.
func (x *windows) dropAccount(a *account) {
	if a.tasks > 0 || a.queue != nil {
		return
	}
	delete(x.accounts, a.Queue)
	if x.lastAccount == a {
		x.lastAccount = nil
	}
}

// move charges another room for what the account holds.
func (a *account) move(from, to *room) {
	from.tasks, from.bytes = from.tasks-a.tasks, from.bytes-a.bytes
	to.tasks, to.bytes = to.tasks+a.tasks, to.bytes+a.bytes
}

// Charge is what a task takes of a window.
type Charge struct {
	At Queue
	// Shared: its message is one that domains share.
	Shared bool
	// Bytes is what it takes; 0 = nothing.
	Bytes int32
}

// Charge takes what a task takes now in place of what it took, both of one queue.
func (x *windows) Charge(task Charge, before int32) {
	if task.Bytes == before {
		return
	}
	a := x.accountOf(task.At)
	w := &x.rooms[a.Lane]
	if a.queue != nil {
		w = &x.pools[a.Lane]
	}
	tasks := 0
	switch {
	case before == 0:
		tasks = 1
	case task.Bytes == 0:
		tasks = -1
	}
	more := int64(task.Bytes) - int64(before)
	w.tasks, w.bytes = w.tasks+tasks, w.bytes+more
	a.tasks, a.bytes = a.tasks+tasks, a.bytes+more
	if task.Shared {
		a.shared += tasks
	}
	if task.Bytes == 0 {
		x.dropAccount(a)
	}
}

// halvingsMax is how often a window is halved for what others hold.
const halvingsMax = 10

// windowBeside is the window that is left beside so much that domains hold which are split off: it is halved for each
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

// queueWindow is the window of a domain that is split off: what the others hold of the pool lessens it.
func (x *windows) queueWindow(a *account) (tasks int, bytes int64) {
	return x.windowBeside(x.pools[a.Lane].tasks-a.tasks, x.pools[a.Lane].bytes-a.bytes)
}

// Room tells whether the window of a lane has room, so that its next message may be read (I7).
func (x *windows) Room(lane ids.Lane) bool {
	tasks, bytes := x.laneWindow(lane)
	return x.rooms[lane].tasks < tasks && x.rooms[lane].bytes < bytes
}

// queueRoom tells whether a domain that is split off has room in the pool.
func (x *windows) queueRoom(q *queue) bool {
	tasks, bytes := x.queueWindow(q.account)
	return q.account.tasks < tasks && q.account.bytes < bytes
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

// weight is what a domain holds of a window, in thousandths.
func (x *windows) weight(a *account) int64 {
	return max(int64(a.tasks)*1000/int64(x.cfg.WindowTasks), a.bytes*1000/x.cfg.WindowBytes)
}

// largest are the accounts that match, the one that holds most first.
func (x *windows) largest(match func(*account) bool) []*account {
	var all []*account
	for _, a := range x.accounts {
		if match(a) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *account) int {
		return cmp.Or(cmp.Compare(x.weight(b), x.weight(a)), cmp.Compare(b.tasks, a.tasks), a.compare(b.Queue))
	})
	return all
}

// apartMax bounds the domains that frontends must store apart. It has all that are split off: what one of them goes on
// to have in messages that domains share is read whatever the pool holds, and takes the lane's window from everybody.
const apartMax = queuesMax

// Apart are domains whose tasks are to be filed under the domain, however few: those that are split off, so that no
// more of them comes with others', and those that hold more tasks of shared messages than there is room left in a lane.
// The largest ones, sorted.
func (x *windows) Apart() (domains []string) {
	left, seen := [ids.Lanes]int{}, make(map[string]bool)
	for lane := range left {
		tasks, _ := x.laneWindow(ids.Lane(lane))
		if lane == int(ids.LaneFirst) {
			tasks /= 2
		}
		left[lane] = max(0, tasks-x.rooms[lane].tasks)
	}
	for _, a := range x.largest(func(a *account) bool { return a.queue != nil || a.shared > left[a.Lane] }) {
		if !seen[a.Domain] {
			seen[a.Domain] = true
			domains = append(domains, a.Domain)
		}
		if len(domains) == apartMax {
			break
		}
	}
	slices.Sort(domains)
	return domains
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
