package match

// Census counts what a shard holds. All but Domains and Lists is 0 where nothing is under
// way, and nothing waits.
type Census struct {
	// Polls wait. Grabs are those gathered or undecided, HandBacks those that history has not heard of,
	// Aside triggers of silent partitions.
	Polls, Grabs, HandBacks, Aside int
	// Slots are in use by attempts of the shard, Reported by what the tables know; Unbooked are those of
	// them for which nothing was booked.
	Slots, Reported, Unbooked int
	// Chunks wait to be stored, Calls and Questions to be answered, Receipts are batches of which some
	// grants may not have been received.
	Chunks, Calls, Questions, Receipts int
	// Domains and Lists are kept for a while.
	Domains, Lists int
}

// Census counts what s holds.
func (s *Shard) Census() Census {
	c := Census{
		Polls: s.polls.Len(), Questions: s.questions.Len(),
		Domains: len(s.domains), Lists: len(s.lists), Chunks: len(s.arrivals.All),
	}
	c.Grabs, c.HandBacks, c.Aside, c.Receipts = s.grabs.Census()
	for _, d := range s.domains {
		c.Chunks += len(d.held) + len(d.puts)
		if d.call != nil {
			c.Calls++
		}
		slots, reported, unbooked := d.UsedSlots()
		c.Slots, c.Reported, c.Unbooked = c.Slots+slots, c.Reported+reported, c.Unbooked+unbooked
	}
	return c
}
