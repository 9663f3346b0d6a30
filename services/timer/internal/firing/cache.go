package firing

import (
	"container/list"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
)

// cache keeps the messages used last, up to a number of bytes.
type cache struct {
	most, bytes int
	order       *list.List // of *cached, the one used last in front
	bySeq       map[uint64]*list.Element
}

type cached struct {
	seq  uint64
	body *batch.Message
}

func newCache(most int) *cache {
	return &cache{most: most, order: list.New(), bySeq: map[uint64]*list.Element{}}
}

func (c *cache) get(seq uint64) *batch.Message {
	e, ok := c.bySeq[seq]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).body
}

func (c *cache) put(seq uint64, body *batch.Message) {
	if _, ok := c.bySeq[seq]; ok || body.Bytes() > c.most {
		return
	}
	c.bySeq[seq] = c.order.PushFront(&cached{seq, body})
	c.bytes += body.Bytes()
	for c.bytes > c.most {
		c.drop(c.order.Back())
	}
}

// forget drops a message of which nothing is wanted any more.
func (c *cache) forget(seq uint64) {
	if e, ok := c.bySeq[seq]; ok {
		c.drop(e)
	}
}

func (c *cache) drop(e *list.Element) {
	old := c.order.Remove(e).(*cached)
	delete(c.bySeq, old.seq)
	c.bytes -= old.body.Bytes()
}
