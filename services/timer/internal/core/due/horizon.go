package due

import (
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

// bucketsTogether is how many buckets come near together, at most: they are read in one go.
const bucketsTogether = 16

// horizon says which buckets are near: memory has their tasks. Of the others only the store has them.
type horizon struct {
	cfg Config
	// last is the last bucket that is near, to the last one of those that are being loaded.
	last, to int32
	// next is the first bucket behind to of which something is to be read; math.MaxInt32 = there is none.
	next int32
	// loaded: all that the store had was loaded once.
	loaded bool
	// shrinkAbove is how many tasks are near when it goes back.
	shrinkAbove int
}

func newHorizon(cfg Config) horizon {
	return horizon{cfg: cfg, last: math.MinInt32, to: math.MaxInt32, next: math.MaxInt32, shrinkAbove: cfg.NearMost}
}

// approachMS is when the next bucket is to come near.
func (h *horizon) approachMS() int64 { return int64(h.next)*h.cfg.BucketMS - h.cfg.HorizonMS/2 }

// begin has the buckets near whose time has nearly come.
func (h *horizon) begin(nowMS int64) {
	if h.cfg.BucketMS > 0 {
		h.to = int32(h.bucketOf(nowMS + h.cfg.HorizonMS))
	}
}

// bucketOf is where a task belongs.
func (h *horizon) bucketOf(dueMS int64) int64 {
	if h.cfg.BucketMS == 0 {
		return 0
	}
	return dueMS / h.cfg.BucketMS
}

// most is how many tasks may be near up to a bucket.
func (h *horizon) most(bucket int32, nowMS int64) int {
	if int64(bucket) <= h.bucketOf(nowMS) {
		return max(h.cfg.NearMost, h.cfg.DueMost)
	}
	return h.cfg.NearMost
}

// isFar reports whether a bucket is neither near nor being loaded.
func (h *horizon) isFar(bucket int64) bool { return bucket > int64(h.to) }

// firstFar is the first bucket that may have tasks which are not near.
func (h *horizon) firstFar() int64 {
	if h.loaded {
		return int64(h.last) + 1
	}
	return int64(h.to) + 1
}

// isLoading reports whether what is known of a bucket may be fired, or have a second copy that comes before.
func (h *horizon) isLoading(bucket int32) bool { return !h.loaded || bucket > h.last && bucket <= h.to }

// nearMS: all tasks that are due by then are near.
func (h *horizon) nearMS() int64 {
	if h.cfg.BucketMS == 0 {
		return math.MaxInt64
	}
	return (int64(h.last)+1)*h.cfg.BucketMS - 1
}

// addFar adds a task that is not near. An earlier stay of it that is near was fired: it is left, so that a second copy of its record is known as one.
func (t *Table) addFar(at far.Place, bucket int32, task *Task) {
	if t.recent.has(task.ID, task.Parkings) {
		return
	}
	if near, ok := t.byID.find(task.ID); ok && task.Parkings <= t.entries.at(near).parkings {
		return
	}
	t.buckets.at(bucket).isFar = true
	t.horizon.next = min(t.horizon.next, bucket)
	fired := t.lines.cursor.Fired(task.Group.Domain, Key{DueMS: task.DueMS, Seq: at.Seq, Index: at.Index}) // by a clock ahead
	t.far.Add(task.ID, at, fired)
	if fired {
		if t.rest != nil && !t.recent.hasRoom() {
			return
		}
		t.recent.remember(task.ID, task.Parkings, task.Group, t.nowMS)
		return
	}
	t.buckets.count(bucket, &task.Group, 1, int64(task.Bytes))
}

// EarlyFar names the records of tasks that are not near, and that an early message has fire. They are to be read again for Bring before it is loaded. Those
// that the cursor covers need none: they were fired.
func (t *Table) EarlyFar(m *Message) (needed []Ref) {
	if t.horizon.cfg.BucketMS == 0 || m.Bucket <= int64(t.horizon.last) || m.Seq <= t.lastSeq {
		return nil
	}
	return Rest{t}.earlyFar(m, true)
}

// Reread is a record that was read again.
type Reread struct {
	far.Place
	Task Task
}

// Bring brings a task near whose bucket is not, so that it can fire early. All are the records at its places.
func (t *Table) Bring(all []Reread) {
	t.mustNotBeFiring()
	picked, ok := t.Far().picked(all)
	if !ok {
		return
	}
	bucket := int32(t.horizon.bucketOf(picked.Task.DueMS))
	t.far.Mark(picked.Task.ID, picked.Place)
	t.buckets.count(bucket, &picked.Task.Group, -1, -int64(picked.Task.Bytes))
	t.add(picked.Place, bucket, &picked.Task)
}

// Approach is called as time goes by. It returns which buckets are to come near, in order: their messages up to a sequence go to LoadBucket, and then comes
// Loaded. None = nothing is to be done now.
func (t *Table) Approach(nowMS int64) (buckets []int64, upTo uint64) {
	h := &t.horizon
	if h.cfg.BucketMS == 0 || h.last < h.to || !h.loaded || t.rest != nil {
		return nil, 0
	}
	t.nowMS = nowMS
	target := int32(h.bucketOf(nowMS + h.cfg.HorizonMS))
	if free := min(target, h.next-1); free > h.last { // nothing lies there
		h.last, h.to = free, free
		t.lines.nearMS = h.nearMS()
	}
	if h.next > target || h.approachMS() > nowMS {
		return nil, 0
	}
	_, fires := t.Next()
	buckets = t.buckets.fitting(target, t.live, func(bucket int32) int { return h.most(bucket, nowMS) }, fires)
	if len(buckets) == 0 {
		return nil, 0
	}
	h.to = int32(buckets[len(buckets)-1])
	return buckets, t.lastSeq
}

// LoadBucket takes in a message of the buckets that are being loaded.
func (t *Table) LoadBucket(m Message) {
	t.mustNotBeFiring()
	t.fireEarly(&m)
	if m.Fence || t.fences.outdated(&m) {
		return
	}
	for i := range m.Tasks {
		task, at := &m.Tasks[i], far.Place{Seq: m.Seq, Index: uint32(i)}
		if task.ID == (ids.TaskID{}) {
			continue
		}
		if t.far.Remove(task.ID, at) {
			t.buckets.count(int32(m.Bucket), &task.Group, -1, -int64(task.Bytes))
		}
		t.add(at, int32(m.Bucket), task)
		t.firstCopy(at, task)
	}
}

// firstCopy has a stay fire as its first record, of which another copy arrived before this one was read: the cursor would cover the first copy before the
// other one is fired.
func (t *Table) firstCopy(at far.Place, task *Task) {
	h, ok := t.byID.find(task.ID)
	if !ok {
		return
	}
	e := t.entries.at(h)
	first := Key{DueMS: task.DueMS, Seq: at.Seq, Index: at.Index}
	if e.place != placeLoading || e.parkings != task.Parkings || first.Compare(e.key()) >= 0 {
		return
	}
	e.setKey(first)
	if x, isEarly := t.early[h]; isEarly {
		x.record = first
		t.early[h] = x
	}
}

// shrink has fewer buckets near if too many tasks are: half of them at most, as far as that can be. The others come near again in their time. Buckets that are
// due are left unless they have too many tasks by themselves.
func (t *Table) shrink() {
	h := &t.horizon
	if t.live <= h.cfg.NearMost {
		h.shrinkAbove = h.cfg.NearMost
	}
	if t.live <= h.shrinkAbove || h.cfg.BucketMS == 0 || h.loaded && h.last < h.to {
		return
	}
	now, due := int32(h.bucketOf(t.nowMS)), 0
	var buckets []int32
	for number, b := range t.buckets.all {
		if b.live == 0 || number > h.to {
			continue
		}
		if buckets = append(buckets, number); number <= now {
			due += b.live
		}
	}
	slices.Sort(buckets)
	last := int32(h.bucketOf(t.lines.cursor.instant())) // what the cursor speaks of is near
	dueMost := h.most(now, t.nowMS)
	if due <= dueMost {
		last = max(last, now)
	}
	near, least := 0, last
	for _, number := range buckets {
		if near > h.most(number, t.nowMS)/2 && number > least {
			break
		}
		near += t.buckets.all[number].live
		last = max(last, number)
	}
	if last < h.to {
		t.goBack(last)
	}
	h.shrinkAbove = max(h.cfg.NearMost, 2*t.live)
	if t.live < dueMost {
		h.shrinkAbove = min(h.shrinkAbove, dueMost)
	}
}

// goBack has no bucket near behind one.
func (t *Table) goBack(last int32) {
	h := &t.horizon
	h.to = last
	if h.loaded {
		h.last = last
		t.lines.nearMS = h.nearMS()
	}
	for n := handle(0); uint32(n) < t.entries.size; n++ {
		e := t.entries.at(n)
		_, isEarly := t.early[n]
		if e.place == placeFree || e.bucket <= last || isEarly {
			continue
		}
		at, g := far.Place{Seq: e.seq, Index: e.index}, t.groups.at(e.group).Group
		t.far.Remove(e.id, at) // it came near alone, to fire early, and no early message has come
		t.buckets.at(e.bucket).isFar = true
		h.next = min(h.next, e.bucket)
		fired := t.lines.cursor.Fired(g.Domain, e.key())
		t.far.Add(e.id, at, fired)
		if !fired {
			t.buckets.count(e.bucket, &g, 1, int64(e.bytes))
		}
		t.remove(n)
	}
}
