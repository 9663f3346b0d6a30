package caps

// Counts are the tasks of a request by their queues.
type Counts struct {
	All []Tasks
	// Firsts is of each of All its first task in the request.
	Firsts []int
	at     map[Queue]int
	last   int // the one that was counted last
}

// Add counts one more task, the i-th.
func (c *Counts) Add(of Queue, most int64, i int) {
	if c.last < len(c.All) && c.All[c.last].Of == of {
		c.All[c.last].N++
		return
	}
	at, known := c.at[of]
	if !known {
		if at = len(c.All); c.at == nil {
			c.at = make(map[Queue]int)
		}
		c.at[of] = at
		c.All, c.Firsts = append(c.All, Tasks{Of: of, Most: most}), append(c.Firsts, i)
	}
	c.All[at].N++
	c.last = at
}
