package ownership

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Announcement is what a member shows with its heartbeat.
type Announcement struct {
	// LogVersion is the newest log version that it reads and writes.
	LogVersion uint32 `json:"log_version"`
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
	// EveryMs is how often the heartbeat is shown, in ms.
	EveryMs int64 `json:"every_ms"`
}

// every is how often the heartbeat is shown.
func (a Announcement) every() time.Duration { return time.Duration(a.EveryMs) * time.Millisecond }

// encode is the heartbeat's value.
func (a Announcement) encode() []byte {
	b, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("ownership: %v", err)) // numbers only
	}
	return b
}

// readAnnouncement reads a heartbeat's value. A member whose heartbeat cannot be read is alive, and reads no
// log version.
func readAnnouncement(value []byte) Announcement {
	var a Announcement
	if json.Unmarshal(value, &a) != nil {
		return Announcement{}
	}
	return a
}

// equal tells whether two announcements say the same, whichever heartbeat they come with.
func (a Announcement) equal(b Announcement) bool {
	return a.LogVersion == b.LogVersion && slices.Equal(a.Stopped, b.Stopped) &&
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
