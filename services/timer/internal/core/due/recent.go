package due

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// recent remembers the stays that were fired recently, so that a second record of
// one, written by a history owner that did not know better, is not fired again,
// and so that history can find what it has not read yet.
type recent struct {
	keepMS int64
	most   int
	groups *groups
	// stays holds the number of the last stay of a task that was fired.
	stays map[ids.TaskID]uint64
	// ring holds the stays in the order of their firing, 40 bytes each; head is the
	// oldest. The number of ring[i] is first+i.
	ring  []firedStay
	head  int
	first uint64
}

type firedStay struct {
	id       ids.TaskID
	parkings uint32
	group    groupHandle
	atMS     int64
	// logSeq is where it lies in the history log; 0 = not known.
	logSeq uint64
}

func (r *recent) add(stay firedStay) {
	if r.most == 0 {
		return
	}
	r.expire(stay.atMS)
	if len(r.ring)-r.head >= r.most {
		r.dropOldest()
	}
	r.groups.hold(stay.group)
	r.stays[stay.id] = r.first + uint64(len(r.ring))
	r.ring = append(r.ring, stay)
}

// hasRoom reports whether another stay puts none out of memory.
func (r *recent) hasRoom() bool { return len(r.ring)-r.head < r.most }

// remember adds a stay that the cursor covers, so that history can find it.
func (r *recent) remember(id ids.TaskID, parkings uint32, g Group, atMS int64) {
	h := r.groups.take(g)
	r.add(firedStay{id: id, parkings: parkings, group: h, atMS: atMS})
	r.groups.drop(h)
}

// find returns the last stay of id that was fired, or nil. It is valid until the
// next change.
func (r *recent) find(id ids.TaskID) *firedStay {
	if number, ok := r.stays[id]; ok {
		return &r.ring[number-r.first]
	}
	return nil
}

// has tells whether this stay of id, or a later one, was fired recently.
func (r *recent) has(id ids.TaskID, parkings uint32) bool {
	fired := r.find(id)
	return fired != nil && parkings <= fired.parkings
}

func (r *recent) expire(nowMS int64) {
	for r.head < len(r.ring) && r.ring[r.head].atMS+r.keepMS < nowMS {
		r.dropOldest()
	}
}

func (r *recent) dropOldest() {
	oldest := r.ring[r.head]
	if r.stays[oldest.id] == r.first+uint64(r.head) {
		delete(r.stays, oldest.id)
	}
	r.groups.drop(oldest.group)
	r.head++
	if r.head > len(r.ring)/2 {
		r.ring = r.ring[:copy(r.ring, r.ring[r.head:])]
		r.first += uint64(r.head)
		r.head = 0
	}
}
