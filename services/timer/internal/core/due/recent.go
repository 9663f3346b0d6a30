package due

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// recent remembers the stays that were fired lately, so that a second record of
// one, written by a history owner that did not know better, is not fired again.
type recent struct {
	keepMS int64
	most   int
	stays  map[ids.TaskID]uint32
	// ring holds the stays in the order of their firing; head is the oldest.
	ring []firedStay
	head int
}

type firedStay struct {
	id       ids.TaskID
	parkings uint32
	atMS     int64
}

func (r *recent) add(id ids.TaskID, parkings uint32, nowMS int64) {
	if r.most == 0 {
		return
	}
	r.expire(nowMS)
	if len(r.ring)-r.head >= r.most {
		r.dropOldest()
	}
	r.ring = append(r.ring, firedStay{id, parkings, nowMS})
	r.stays[id] = parkings
}

// has tells whether this stay of id, or a later one, was fired lately.
func (r *recent) has(id ids.TaskID, parkings uint32) bool {
	fired, ok := r.stays[id]
	return ok && parkings <= fired
}

func (r *recent) expire(nowMS int64) {
	for r.head < len(r.ring) && r.ring[r.head].atMS+r.keepMS < nowMS {
		r.dropOldest()
	}
}

func (r *recent) dropOldest() {
	oldest := r.ring[r.head]
	if r.stays[oldest.id] == oldest.parkings {
		delete(r.stays, oldest.id)
	}
	r.head++
	if r.head > len(r.ring)/2 {
		r.ring = r.ring[:copy(r.ring, r.ring[r.head:])]
		r.head = 0
	}
}
