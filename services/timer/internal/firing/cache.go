package firing

import (
	"container/list"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
)

// cache keeps messages of which records are still wanted, those used last, up to a number of bytes.
type cache struct {
	most, bytes int
	order       *list.List // of *cached, the one used last in front
	bySeq       map[uint64]*list.Element
}

// cached is a message of which left records were not taken.
type cached struct {
	seq  uint64
	body *batch.Message
	left int
}

func newCache(most int) *cache {
	return &cache{most: most, order: list.New(), bySeq: map[uint64]*list.Element{}}
}

// take returns a message, or nil, to take records out of it. A message of which all were taken is forgotten.
func (c *cache) take(seq uint64, records int) *batch.Message {
	e, ok := c.bySeq[seq]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	m := e.Value.(*cached)
	if m.left -= records; m.left <= 0 {
		c.drop(e)
	}
	return m.body
}

// put keeps a message of which some records are left.
func (c *cache) put(seq uint64, body *batch.Message, left int) {
	if _, ok := c.bySeq[seq]; ok || left <= 0 || body.Bytes() > c.most {
		return
	}
	c.bySeq[seq] = c.order.PushFront(&cached{seq, body, left})
	c.bytes += body.Bytes()
	for c.bytes > c.most {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	old := c.order.Remove(e).(*cached)
	delete(c.bySeq, old.seq)
	c.bytes -= old.body.Bytes()
}
