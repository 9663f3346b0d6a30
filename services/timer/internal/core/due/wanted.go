package due

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Wanted is a task that somebody wants fired now.
type Wanted struct {
	ID ids.TaskID
	// Domain is the caller's; empty = a service of ours. A task of another domain
	// is left alone and not reported.
	Domain string
}

// EarlyMessage is an early message to append to a bucket.
type EarlyMessage struct {
	Bucket int64
	All    []Early
}

// Answer tells what becomes of tasks that somebody wants fired. A task that the
// table does not know, or that is another domain's, is in neither list.
type Answer struct {
	// Coming fire now.
	Coming []ids.TaskID
	// Fired recently.
	Fired []Fate
}

// Fate is where a fired task went.
type Fate struct {
	ID ids.TaskID
	// LogSeq is its place in the history log; 0 = not known.
	LogSeq uint64
}

// FireEarly returns what must be stored so that all fire now, and the answer for when it is stored. It changes nothing: the messages take effect when they
// are loaded. Tasks that are due by nowMS need none.
func (t *Table) FireEarly(all []Wanted, nowMS int64) (messages []EarlyMessage, a Answer) {
	seen := make(map[Wanted]bool, len(all))
	at := map[int64]int{}
	for _, w := range all {
		if seen[w] {
			continue
		}
		seen[w] = true
		stay, status := t.Find(w.ID, w.Domain)
		switch status {
		case Fired:
			a.Fired = append(a.Fired, Fate{ID: w.ID, LogSeq: stay.LogSeq})
			continue
		case Unknown:
			continue
		}
		a.Coming = append(a.Coming, w.ID)
		if stay.Early || stay.DueMS <= nowMS {
			continue
		}
		i, ok := at[stay.Bucket]
		if !ok {
			i = len(messages)
			at[stay.Bucket] = i
			messages = append(messages, EarlyMessage{Bucket: stay.Bucket})
		}
		messages[i].All = append(messages[i].All, Early{ID: w.ID, Generation: stay.Parkings})
	}
	slices.SortFunc(messages, func(a, b EarlyMessage) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return messages, a
}
