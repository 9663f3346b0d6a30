package ownership

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
)

// Announcement is what a member shows with its heartbeat. A member whose heartbeat
// is empty is one of the first version.
type Announcement struct {
	// Reads and Writes are the newest log versions that it reads and writes.
	Reads  uint32 `json:"reads,omitempty"`
	Writes uint32 `json:"writes,omitempty"`
	// Stopped are the partitions that it gave up, sorted.
	Stopped []int `json:"stopped,omitempty"`
}

// encode is the heartbeat's value.
func (a Announcement) encode() []byte {
	b, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("ownership: %v", err)) // numbers only
	}
	return b
}

// readAnnouncement reads a heartbeat's value, leniently: what is missing or cannot
// be read is that of the first version.
func readAnnouncement(value []byte) Announcement {
	var a Announcement
	if json.Unmarshal(value, &a) != nil {
		a = Announcement{}
	}
	a.Reads, a.Writes = logversion.Of(a.Reads), logversion.Of(a.Writes)
	return a
}

func (a Announcement) equal(b Announcement) bool {
	return a.Reads == b.Reads && a.Writes == b.Writes && slices.Equal(a.Stopped, b.Stopped)
}

// Candidate is a node that may serve partitions, except those that it refuses.
type Candidate struct {
	Node    string
	Refuses []int
}

func (c Candidate) equal(d Candidate) bool {
	return c.Node == d.Node && slices.Equal(c.Refuses, d.Refuses)
}

// candidate is what a member of this announcement may serve in a cluster that
// writes version; ok is false where it cannot read that (I13).
func candidate(node string, a Announcement, version uint32) (c Candidate, ok bool) {
	return Candidate{Node: node, Refuses: a.Stopped}, logversion.Of(a.Reads) >= version
}
