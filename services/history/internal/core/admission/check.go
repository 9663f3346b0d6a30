package admission

import (
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Check says what is wrong with the gate of a partition that has these tasks, or nil; replays: a takeover is under way.
// It looks at everything, so it is for tests and simulations.
func (g *Gate) Check(tasks []Charge, replays bool) error {
	want := &Gate{windows: windows{cfg: g.cfg, domains: make(map[domainAt]*domain), queues: g.queues}}
	rooms := make(map[*queue]room)
	for _, q := range g.queues {
		rooms[q], q.room = q.room, room{}
		d := want.domainOf(q.Queue.domain())
		d.queues = append(d.queues, q)
	}
	for _, t := range tasks {
		want.Charge(t, 0)
	}
	defer func() {
		for q, r := range rooms {
			q.room = r
		}
	}()
	for _, q := range g.queues {
		if q.room != rooms[q] {
			return fmt.Errorf("the room of %+v is %+v, its tasks take %+v", q.Queue, rooms[q], q.room)
		}
	}
	return errors.Join(g.checkRooms(want), g.checkQueues(replays))
}

// checkRooms compares domains, rooms and pools with what is charged.
func (g *Gate) checkRooms(want *Gate) error {
	for at, d := range g.domains {
		w := want.domains[at]
		if w == nil {
			return fmt.Errorf("%+v holds nothing and is there", at)
		}
		if d.apart != w.apart || d.shared != w.shared || len(d.queues) != len(w.queues) || len(d.accounts) != len(w.accounts) {
			return fmt.Errorf("domain %+v is %+v, its tasks take %+v", at, d, w)
		}
		for tasklist, a := range d.accounts {
			if b := w.accounts[tasklist]; b == nil || a.room != b.room || a.queue != b.queue {
				return fmt.Errorf("the account of %s of %+v is %+v, its tasks take %+v", tasklist, at, a, b)
			}
		}
	}
	if len(g.domains) != len(want.domains) {
		return fmt.Errorf("%d domains are there, tasks are of %d", len(g.domains), len(want.domains))
	}
	for i := range g.rooms {
		if g.rooms[i] != want.rooms[i] || g.pools[i] != want.pools[i] {
			return fmt.Errorf("the room of lane %s is %+v and %+v, its tasks take %+v and %+v", ids.Lane(i), g.rooms[i], g.pools[i], want.rooms[i], want.pools[i])
		}
	}
	return nil
}

// checkQueues compares the queues with the domains and the lanes.
func (g *Gate) checkQueues(replays bool) error {
	for at, q := range g.queues {
		if q.Queue != at || at.Place == "" || q.domain != g.domains[at.domain()] {
			return fmt.Errorf("queue %+v is listed as %+v", q, at)
		}
		if read := g.lanes[at.Lane]; !replays && (q.read > read || q.last > read) {
			return fmt.Errorf("queue %+v is read up to %d, passed over up to %d, the lane is read up to %d", at, q.read, q.last, read)
		}
	}
	for lane, apart := range g.schedule.apart {
		for _, d := range apart {
			if len(d.queues) == 0 || g.domains[d.domainAt] != d {
				return fmt.Errorf("domain %s has turns in lane %s and no queue", d.Name, ids.Lane(lane))
			}
		}
	}
	for _, d := range g.domains {
		if d.lists() > listsMax {
			return fmt.Errorf("%+v has %d tasklists that are split off", d.domainAt, d.lists())
		}
	}
	return nil
}
