package intake

import (
	"sync"
	"time"
)

// Tasks of a batch are stored as others are, in messages of their own, which the log refuses once the batch is closed in that partition (decision 0047).

const (
	// openKnownFor is for how long a frontend takes a batch for open that was. A batch that is closed meanwhile is closed in the log for longer.
	openKnownFor = 10 * time.Second
	// openKnownMax bounds the batches that are known to be open.
	openKnownMax = 4096
)

// openBatches are batches that were open a moment ago.
type openBatches struct {
	mu    sync.Mutex
	known map[batchRef]openBatch
	// waiting are submissions whose batch is being read.
	waiting map[batchRef][]*submission
}

// openBatch is when a batch was created, Unix ms, and when it was read.
type openBatch struct {
	made int64
	read time.Time
}

// find returns when the batch of s was created, if it was open a moment ago. Else s waits until the batch is read; first: no one reads it so far.
func (o *openBatches) find(s *submission) (made int64, known, first bool) {
	of := s.batchRef()
	o.mu.Lock()
	defer o.mu.Unlock()
	if b, ok := o.known[of]; ok && time.Since(b.read) < openKnownFor {
		return b.made, true, false
	}
	if o.waiting == nil {
		o.waiting = make(map[batchRef][]*submission)
	}
	o.waiting[of] = append(o.waiting[of], s)
	return 0, false, len(o.waiting[of]) == 1
}

// read takes those out that wait for a batch.
func (o *openBatches) read(of batchRef) []*submission {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.waiting[of]
	delete(o.waiting, of)
	return all
}

func (o *openBatches) learn(of batchRef, made int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || len(o.known) >= openKnownMax {
		o.known = make(map[batchRef]openBatch)
	}
	o.known[of] = openBatch{made, time.Now()}
}
