package replica

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// room is what tasks take of a window.
type room struct {
	tasks int
	bytes int64
}

// account is what the tasks of one domain take of a lane's window; or, if it lags, of what those that lag
// behind the lane hold beside it, the lane's pool.
type account struct {
	Queue
	tasks int
	bytes int64
	// shared counts those of the tasks that lie in messages that domains share.
	shared int
	// queue is not nil if the domain lags.
	queue *queue
}

// accountOf is the account of a domain in a lane.
func (r *Replica) accountOf(at Queue) *account {
	if r.lastAccount != nil && r.lastAccount.Queue == at {
		return r.lastAccount
	}
	a := r.accounts[at]
	if a == nil {
		a = &account{Queue: at}
		r.accounts[at] = a
	}
	r.lastAccount = a
	return a
}

// dropAccount forgets an account that holds nothing.
func (r *Replica) dropAccount(a *account) {
	if a.tasks > 0 || a.queue != nil {
		return
	}
	delete(r.accounts, a.Queue)
	if r.lastAccount == a {
		r.lastAccount = nil
	}
}

// move charges another room for what the account holds.
func (a *account) move(from, to *room) {
	from.tasks, from.bytes = from.tasks-a.tasks, from.bytes-a.bytes
	to.tasks, to.bytes = to.tasks+a.tasks, to.bytes+a.bytes
}

// charge makes e take its room, or give it back. A task that has run for long takes none: how
// many run is up to the workers.
func (r *Replica) charge(e *Entry) {
	want := int32(0)
	if !e.left && (!e.exempt || e.State != taskstate.Running) {
		want = int32(e.Footprint())
	}
	if want == e.charged {
		return
	}
	a := r.accountOf(Queue{e.Position.Lane(), e.Domain})
	w := &r.rooms[a.Lane]
	if a.queue != nil {
		w = &r.pools[a.Lane]
	}
	tasks := 0
	switch {
	case e.charged == 0:
		tasks = 1
	case want == 0:
		tasks = -1
	}
	more := int64(want) - int64(e.charged)
	w.tasks, w.bytes = w.tasks+tasks, w.bytes+more
	a.tasks, a.bytes = a.tasks+tasks, a.bytes+more
	if e.shared {
		a.shared += tasks
	}
	if e.charged = want; want == 0 {
		r.dropAccount(a)
	}
}

// halvingsMax is how often a window is halved for what others hold.
const halvingsMax = 10

// windowBeside is the window that is left beside so much that domains hold which lag: it is halved for each
// window of that, and after halvingsMax there is none. So a thousand domains that flood one after the other hold
// as much as eleven windows, and so does what one has in messages that domains share.
func (r *Replica) windowBeside(tasks int, bytes int64) (int, int64) {
	halvings := max(tasks/r.cfg.WindowTasks, int(bytes/r.cfg.WindowBytes))
	if halvings > halvingsMax {
		return 0, 0
	}
	return max(1, r.cfg.WindowTasks>>halvings), max(1, r.cfg.WindowBytes>>halvings)
}

// hasRoom tells whether a lane's window has room.
func (r *Replica) hasRoom(lane ids.Lane) bool {
	w, pool := &r.rooms[lane], &r.pools[lane]
	tasks, bytes := r.windowBeside(pool.tasks, pool.bytes)
	return w.tasks < tasks && w.bytes < bytes
}

// queueRoom tells whether a domain that lags has room in the pool.
func (r *Replica) queueRoom(q *queue) bool {
	a, pool := q.account, &r.pools[q.Lane]
	tasks, bytes := r.windowBeside(pool.tasks-a.tasks, pool.bytes-a.bytes)
	return a.tasks < tasks && a.bytes < bytes
}

// Room tells whether the next message of a lane may be read (I7).
func (r *Replica) Room(lane ids.Lane) bool {
	return r.hasRoom(lane)
}

// unreadTasks is how many tasks an unread message is taken for; opening it would cost more.
const unreadTasks = 100

// Shareable is how much may be filed in messages of the most urgent lane whatever its
// priority, tasks and their bytes, while so many messages of that lane are unread. It leaves half
// of the lane's window to the tasks that belong there: past it an urgent task could have to
// wait on disk behind others (I7).
func (r *Replica) Shareable(unread int64) (tasks, bytes int64) {
	pool := &r.pools[ids.LaneFirst]
	mostTasks, mostBytes := r.windowBeside(pool.tasks, pool.bytes)
	w := &r.rooms[ids.LaneFirst]
	tasks = int64(mostTasks/2-w.tasks) - unread*unreadTasks
	bytes = mostBytes/2 - w.bytes
	if tasks <= 0 || bytes <= 0 {
		return 0, 0
	}
	return tasks, bytes
}

// weight is what a domain holds of a window, in thousandths.
func (r *Replica) weight(a *account) int64 {
	return max(int64(a.tasks)*1000/int64(r.cfg.WindowTasks), a.bytes*1000/r.cfg.WindowBytes)
}

// largest are the accounts that match, the one that holds most first.
func (r *Replica) largest(match func(*account) bool) []*account {
	var all []*account
	for _, a := range r.accounts {
		if match(a) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *account) int {
		return cmp.Or(cmp.Compare(r.weight(b), r.weight(a)), cmp.Compare(b.tasks, a.tasks), a.compare(b.Queue))
	})
	return all
}

// apartMax bounds the domains that frontends must store apart. It has all that lag: what one of them goes on to have
// in messages that domains share is read whatever the pool holds, and takes the lane's window from everybody.
const apartMax = queuesMax

// Apart are domains whose tasks are to be filed under the domain, however few: those that lag, so that no more of
// them comes with others', and those that hold more tasks of shared messages than there is room left in a lane.
// The largest ones, sorted.
func (r *Replica) Apart() (domains []string) {
	left, seen := [ids.Lanes]int{}, make(map[string]bool)
	for lane := range left {
		tasks, _ := r.windowBeside(r.pools[lane].tasks, r.pools[lane].bytes)
		if lane == int(ids.LaneFirst) {
			tasks /= 2
		}
		left[lane] = max(0, tasks-r.rooms[lane].tasks)
	}
	for _, a := range r.largest(func(a *account) bool { return a.queue != nil || a.shared > left[a.Lane] }) {
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
