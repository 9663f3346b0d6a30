package table

import (
	"bytes"
	"sort"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// column is a line of chunks by their places; those of one place by their bytes.
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
	head.Drop(n)
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

// inOrder is how many of the head's triggers may be taken before the next chunk comes: a few at least, since each
// change costs more than many triggers.
func (c *column) inOrder() int {
	head := c.head()
	if head.Step == 0 || c.first+1 == len(c.chunks) {
		return head.Len()
	}
	return max(inOrderMin, int((c.chunks[c.first+1].Place()-head.Place())/head.Step)+1)
}

// inOrderMin is how many triggers of one chunk are taken at once, though others come before the last of them.
const inOrderMin = 8

// reorder restores the order after the head lost its first triggers: it keeps its place or gets a later one, and stands behind
// others of the same place whose bytes come first.
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
	if a.Place() != b.Place() {
		return a.Place() < b.Place()
	}
	return bytes.Compare(a.Packed(), b.Packed()) < 0
}

func same(a, b Chunk) bool { return a.Place() == b.Place() && bytes.Equal(a.Packed(), b.Packed()) }
