package archive

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// Filed is a task in the archive.
type Filed struct {
	ID     ids.TaskID
	Domain string
}

// Bounds are how much may be filed before the index follows: messages, their bytes, and pages that the index would have at least. A
// reader holds that much of the archive's end.
type Bounds struct{ Messages, Bytes, Pages int }

// IndexAfter are the bounds by default.
var IndexAfter = Bounds{Messages: 1024, Bytes: 4 << 20, Pages: 4096}

// Tail is what is filed and not in the index yet.
type Tail struct {
	Entries []Entry
	size    Bounds
	pages   map[Key]struct{} // of the last level
}

// Add takes one message and the tasks in it.
func (t *Tail) Add(seq uint64, tasks []Filed, retentionS int64, bytes int) {
	if t.pages == nil {
		t.pages = make(map[Key]struct{})
	}
	for _, task := range tasks {
		t.Entries = append(t.Entries, Entry{Place{Fingerprint(task.ID), seq}, retentionS, task.Domain})
		t.pages[KeyOf(task, Levels-1)] = struct{}{}
	}
	t.size.Messages++
	t.size.Bytes += bytes
}

// Exceeds tells that the index must follow with the next write.
func (t *Tail) Exceeds(b Bounds) bool {
	return t.size.Messages >= b.Messages || t.size.Bytes >= b.Bytes || len(t.pages) >= b.Pages
}
