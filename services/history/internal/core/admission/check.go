package admission

import (
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Check says what is wrong with the gate of a partition that has these tasks, or nil; replays: a takeover is under way.
// It looks at everything, so it is for tests and simulations.
func (g *Gate) Check(tasks []Charge, replays bool) error {
	want := make(map[Queue]*account)
	for _, t := range tasks {
		a := want[t.At]
		if a == nil {
			a = &account{Queue: t.At}
			want[t.At] = a
		}
		a.tasks++
		a.bytes += int64(t.Bytes)
		if t.Shared {
			a.shared++
		}
	}
	return errors.Join(g.checkRooms(want), g.checkQueues(replays))
}

// checkRooms compares accounts, rooms and pools with what is charged.
func (g *Gate) checkRooms(want map[Queue]*account) error {
	var rooms, pools [ids.Lanes]room
	for at, a := range g.accounts {
		w := want[at]
		if w == nil {
			w = &account{}
		}
		if a.tasks != w.tasks || a.bytes != w.bytes || a.shared != w.shared || a.tasks == 0 && a.queue == nil {
			return fmt.Errorf("the account of %+v is %+v, its tasks take %+v", at, a, w)
		}
		if a.queue != nil {
			a.move(new(room), &pools[at.Lane])
		} else {
			a.move(new(room), &rooms[at.Lane])
		}
	}
	for at := range want {
		if g.accounts[at] == nil {
			return fmt.Errorf("%+v has no account", at)
		}
	}
	for i := range rooms {
		if rooms[i] != g.rooms[i] || pools[i] != g.pools[i] {
			return fmt.Errorf("the room of lane %s is %+v and %+v, its tasks take %+v and %+v", ids.Lane(i), g.rooms[i], g.pools[i], rooms[i], pools[i])
		}
	}
	return nil
}

// checkQueues compares the queues with the accounts and the lanes.
func (g *Gate) checkQueues(replays bool) error {
	for at, q := range g.queues {
		if q.Queue != at || at.Domain == "" {
			return fmt.Errorf("queue %+v is listed as %+v", q.Queue, at)
		}
		if a := g.accounts[at]; a == nil || a != q.account || a.queue != q {
			return fmt.Errorf("queue %+v has the account %+v", at, q.account)
		}
		if read := g.lanes[at.Lane]; !replays && (q.read > read || q.last > read) {
			return fmt.Errorf("queue %+v is read up to %d, passed over up to %d, the lane is read up to %d", at, q.read, q.last, read)
		}
	}
	return nil
}
