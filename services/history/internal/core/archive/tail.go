package archive

import "github.com/yardmaster-io/yardmaster/contracts/ids"

const (
	// tailMessages and tailBytes are how much may be filed before the index follows:
	// a reader holds that much of the archive's end.
	tailMessages = 64
	tailBytes    = 1 << 20
)

// Tail is what is filed and not in the index yet.
type Tail struct {
	Entries  []Entry
	messages int
	bytes    int
}

// Add takes one message and the tasks in it.
func (t *Tail) Add(seq uint64, tasks []ids.TaskID, retentionS int64, bytes int) {
	for _, id := range tasks {
		t.Entries = append(t.Entries, Entry{ID: id, Seq: seq, RetentionS: retentionS})
	}
	t.messages++
	t.bytes += bytes
}

// Due tells that the index must follow with the next write.
func (t *Tail) Due() bool { return t.messages >= tailMessages || t.bytes >= tailBytes }
