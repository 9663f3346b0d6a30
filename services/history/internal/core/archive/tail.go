package archive

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// Filed is a task in the archive.
type Filed struct {
	ID     ids.TaskID
	Domain string
}

// Tail is what is filed and not in the index yet.
type Tail struct {
	Entries         []Entry
	Messages, Bytes int
}

// Add takes one message and the tasks in it.
func (t *Tail) Add(seq uint64, tasks []Filed, retentionS int64, bytes int) {
	for _, task := range tasks {
		t.Entries = append(t.Entries, Entry{Place{Fingerprint(task.ID), seq}, retentionS, task.Domain})
	}
	t.Messages++
	t.Bytes += bytes
}
