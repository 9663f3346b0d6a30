package table

import (
	"bytes"
	"sort"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// column is a line of chunks, oldest first; of one age, in the order of their bytes.
type column struct {
	// first is the index of the head: what lies before is taken.
	first  int
	chunks []Chunk
}

func (c *column) empty() bool { return c.first == len(c.chunks) }

func (c *column) head() *Chunk { return &c.chunks[c.first] }

// put files a chunk; one that is there already is not doubled.
func (c *column) put(chunk Chunk) {
	live := c.chunks[c.first:]
	at := c.first + sort.Search(len(live), func(i int) bool { return !before(live[i], chunk) })
	if at < len(c.chunks) && same(c.chunks[at], chunk) {
		return
	}
	c.chunks = append(c.chunks, Chunk{})
	copy(c.chunks[at+1:], c.chunks[at:])
	c.chunks[at] = chunk
}

// take removes n triggers from the head and returns them.
func (c *column) take(n int) []byte {
	head := c.head()
	got := head.Triggers[:n*ids.TriggerBytes]
	head.Triggers = head.Triggers[len(got):]
	if len(head.Triggers) > 0 {
		c.reorder()
		return got
	}
	*head = Chunk{}
	c.first++
	if c.first > 64 && c.first*2 > len(c.chunks) {
		c.chunks = append(c.chunks[:0], c.chunks[c.first:]...)
		c.first = 0
	}
	return got
}

// reorder restores the order after the head lost its first triggers: it keeps its
// age, but stands behind others of the same age whose bytes come first.
func (c *column) reorder() {
	for i := c.first; i+1 < len(c.chunks) && before(c.chunks[i+1], c.chunks[i]); i++ {
		c.chunks[i], c.chunks[i+1] = c.chunks[i+1], c.chunks[i]
	}
}

func (c *column) triggers() int {
	n := 0
	for _, chunk := range c.chunks[c.first:] {
		n += chunk.Len()
	}
	return n
}

func before(a, b Chunk) bool {
	if a.ReadyAt != b.ReadyAt {
		return a.ReadyAt < b.ReadyAt
	}
	return bytes.Compare(a.Triggers, b.Triggers) < 0
}

func same(a, b Chunk) bool { return a.ReadyAt == b.ReadyAt && bytes.Equal(a.Triggers, b.Triggers) }
