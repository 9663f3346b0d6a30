package ownership

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

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
	// Leaving: it takes no partition any more.
	Leaving bool `json:"leaving,omitempty"`
	// Holds are the partitions that it serves, is about to serve, or is not done with yet, sorted.
	Holds []int `json:"holds,omitempty"`
	// Run tells this run of the program from others of the same name, and Beat numbers
	// its heartbeats from 1.
	Run  uint64 `json:"run,omitempty"`
	Beat uint64 `json:"beat,omitempty"`
	// EveryMs is how often the heartbeat is shown, in ms. Absent: every second.
	EveryMs int64 `json:"every_ms,omitempty"`
}

// beatOld is how often a program shows its heartbeat that does not say.
const beatOld = time.Second

// every is how often the heartbeat is shown.
func (a Announcement) every() time.Duration {
	if a.EveryMs <= 0 {
		return beatOld
	}
	return time.Duration(a.EveryMs) * time.Millisecond
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

// equal tells whether two announcements say the same, whichever heartbeat they come with.
func (a Announcement) equal(b Announcement) bool {
	return a.Reads == b.Reads && a.Writes == b.Writes && slices.Equal(a.Stopped, b.Stopped) &&
		a.Leaving == b.Leaving && slices.Equal(a.Holds, b.Holds)
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
// writes version; ok is false where it cannot read that (I13), or leaves.
func candidate(node string, a Announcement, version uint32) (c Candidate, ok bool) {
	return Candidate{Node: node, Refuses: a.Stopped}, logversion.Of(a.Reads) >= version && !a.Leaving
}
