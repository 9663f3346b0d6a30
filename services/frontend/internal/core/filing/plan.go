// Package filing says which messages of its log the submits of a partition become.
//
// Owns: the cutting of a flush into messages, and the account of how much may still be filed without regard to priority.
//
// Never does: I/O, or bounding what waits; the caller admits. It does not know tasks: an item is a
// whole request, which is never divided (I2).
//
// On failure: nothing can fail. A message costs the log a sync to disk whatever it holds, so requests
// share one; but an urgent task must not wait on disk behind others (I7), and a domain with many
// tasks gets a subject to itself, where a reader can leave them aside (I11).
package filing

import (
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

const (
	// OwnTasks and OwnBytes are what a destination has in a flush, one or the other, to get a message
	// of its own. Fewer share: a sync for each would cost more than they gain.
	OwnTasks = 64
	OwnBytes = 32 << 10
	// OwnMax bounds the destinations of a flush that get one, the largest first: what a flush costs
	// must not grow with the number of tasklists that a domain makes up.
	OwnMax = 8
	// ApartMax bounds the messages of a flush for domains that the owner wants apart and for batches, AloneMax those for batches of one domain: the first
	// ones. The others are left for the next flush.
	ApartMax, AloneMax = 64, 8
)

// Destination is where the tasks of a request belong.
type Destination struct {
	// Lane is the highest priority among those that are due, or Later.
	Lane   ids.Lane
	Domain string
	// Tasklist is empty if there are several. Of the tasks of a batch it is topology.BatchTasklist.
	Tasklist string
}

// Request is what Plan needs to know of one.
type Request struct {
	Destination
	// Tasks and Bytes are 1 or more.
	Tasks, Bytes int
	// Apart: the tasks of this domain are to be filed under it, however few: the owner of the partition wants that, or they have order keys.
	// ListApart: those of this tasklist are to be filed under it.
	Apart, ListApart bool
	// Started: its tasks start with the submit, so it goes where it is read at once, if there is room.
	Started bool
	// Alone: its tasks share a message with those of the same destination only, however few.
	Alone bool
}

// Message is one message of the log.
type Message struct {
	// Destination is that of all its requests. If they differ, or each is for several
	// tasklists, Tasklist is empty, and Lane is where the message is filed; Domain is empty if domains share it.
	Destination
	// Requests are indexes of what was planned.
	Requests []int
}

// group is the requests of one destination, or those that share messages.
type group struct {
	Message
	tasks, bytes int
	mixed, apart bool
	// wanted: the owner wants it apart.
	wanted bool
	// late: it is left for the next flush.
	late bool
}

func (g *group) add(i int, r *Request) {
	if len(g.Requests) > 0 && g.Destination != r.Destination {
		g.mixed = true
	}
	if !g.mixed {
		g.Destination = r.Destination
	}
	g.Requests = append(g.Requests, i)
	g.tasks += r.Tasks
	g.bytes += r.Bytes
}

// Plan cuts a flush into messages of so many bytes at most; a longer request goes alone. Destinations
// with many tasks get messages of their own, the others share. While there is room, all of them share
// one, on the most urgent lane; else one for each lane, so that what waits on disk waits by
// priority. A message that many share comes first: it is answered for the least wait. Late are the requests that are left for the
// next flush.
func Plan(requests []Request, room *Room, bytesMax int) (messages []Message, late []int) {
	own, small, late := divide(requests)
	groups := append(share(requests, small, room), own...)
	for i := range groups {
		if g := &groups[i]; g.Lane == ids.LaneFirst && !g.wanted { // what is split off takes nothing of the room
			room.charge(g.tasks, g.bytes)
		}
	}
	messages = make([]Message, 0, len(groups))
	for i := range groups {
		messages = groups[i].cut(requests, bytesMax, messages)
	}
	return messages, late
}

// divide finds the destinations that get messages of their own, and the requests of the others, in
// their order. Late are those of domains that are to be filed apart and have no place in this flush: in a message that
// others share they would hold those up.
func divide(requests []Request) (own []group, small, late []int) {
	at := make(map[Destination]int)
	var all []group
	apart := 0
	alone := make(map[string]int)
	for i := range requests {
		r := &requests[i]
		if r.Started {
			small = append(small, i)
			continue
		}
		key := r.Destination
		if r.Apart && !r.Alone && !r.ListApart {
			key.Tasklist = apartTasklist
		}
		k, ok := at[key]
		if !ok {
			k = len(all)
			at[key] = k
			all = append(all, group{})
			if r.Apart || r.ListApart || r.Alone {
				if r.Alone {
					alone[r.Domain]++
				}
				all[k].apart, all[k].wanted, all[k].late = true, r.Apart || r.ListApart, apart >= ApartMax || alone[r.Domain] > AloneMax
				if !all[k].late {
					apart++
				}
			}
		}
		all[k].add(i, r)
	}
	var aparts []group
	for i := range all {
		if g := &all[i]; g.mixed {
			g.Destination.Tasklist = ""
		}
		if all[i].late {
			late = append(late, all[i].Requests...)
			continue
		}
		if all[i].apart {
			aparts = append(aparts, all[i])
			continue
		}
		if all[i].tasks >= OwnTasks || all[i].bytes >= OwnBytes {
			own = append(own, all[i])
			continue
		}
		small = append(small, all[i].Requests...)
	}
	slices.SortStableFunc(own, func(a, b group) int { return cmp.Compare(b.bytes, a.bytes) })
	for len(own) > OwnMax {
		last := len(own) - 1
		small = append(small, own[last].Requests...)
		own = own[:last]
	}
	slices.Sort(small)
	slices.Sort(late)
	return append(own, aparts...), small, late
}

// apartTasklist stands for all tasklists of a domain that is filed apart; none has this name.
const apartTasklist = "+"

// share groups small requests: all in one, also a single one, or it could wait on disk behind a flood of
// its lane; or by lane.
func share(requests []Request, small []int, room *Room) []group {
	if len(small) == 0 {
		return nil
	}
	var one group
	started := false
	for _, i := range small {
		one.add(i, &requests[i])
		started = started || requests[i].Started
	}
	if !started && !one.mixed && (one.Lane == ids.LaneFirst || one.Lane == ids.LaneLater) {
		return []group{one} // it belongs there
	}
	if room.has(one.tasks, one.bytes) {
		one.Destination = Destination{Lane: ids.LaneFirst}
		return []group{one}
	}
	var lanes [ids.Lanes]group
	for _, i := range small {
		lanes[requests[i].Lane].add(i, &requests[i])
	}
	var out []group
	for lane := range lanes {
		g := &lanes[lane]
		if len(g.Requests) == 0 {
			continue
		}
		if g.mixed {
			g.Destination = Destination{Lane: ids.Lane(lane)}
		}
		out = append(out, *g)
	}
	return out
}

// cut appends the messages of g.
func (g *group) cut(requests []Request, bytesMax int, to []Message) []Message {
	begin, bytes := 0, 0
	for k, i := range g.Requests {
		size := requests[i].Bytes
		if k > begin && bytes+size > bytesMax {
			to = append(to, Message{g.Destination, g.Requests[begin:k]})
			begin, bytes = k, 0
		}
		bytes += size
	}
	return append(to, Message{g.Destination, g.Requests[begin:]})
}

// The next message of a kind rests for RestShare times as long as the last took at most, where RestCompany
// or more went together, and never longer than RestMax.
const (
	RestShare   = 3
	RestCompany = 24
	RestMax     = 20 * time.Millisecond
)

// Rest is for how long a partition's log is left to others after a message with n events that took
// so long. The log syncs each message to disk, one after the other, and submits wait behind events:
// the more there are, the better they wait for company. One alone is not followed by a rest, and none (n = 0)
// neither: it is 0 or less.
func Rest(n int, took time.Duration) time.Duration {
	return min(took*RestShare*time.Duration(min(n-1, RestCompany))/RestCompany, RestMax)
}
