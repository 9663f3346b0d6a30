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
// table does not know, or that is another domain's, is in no list.
type Answer struct {
	// Coming fire now, or others of their domain before them.
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

// FireEarly returns the stays for which an early message must be stored so that all fire now, and the answer for when that is done. It changes nothing: the
// messages take effect when they are loaded. Tasks that are due by nowMS need none.
func (t *Table) FireEarly(all []Wanted, nowMS int64) (needed []Stay, a Answer) {
	seen := make(map[Wanted]bool, len(all))
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
		if !stay.Early && stay.DueMS > nowMS {
			needed = append(needed, stay)
		}
	}
	return needed, a
}

// EarlyMessages are those that have stays fire early, by bucket.
func EarlyMessages(all []Stay) (messages []EarlyMessage) {
	at := map[int64]int{}
	for _, stay := range all {
		i, ok := at[stay.Bucket]
		if !ok {
			i = len(messages)
			at[stay.Bucket] = i
			messages = append(messages, EarlyMessage{Bucket: stay.Bucket})
		}
		messages[i].All = append(messages[i].All, Early{ID: stay.ID, Generation: stay.Parkings})
	}
	slices.SortFunc(messages, func(a, b EarlyMessage) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return messages
}

// Waits reports whether a stay has not been fired.
func (t *Table) Waits(s Stay) bool {
	now, status := t.Find(s.ID, "")
	return status == Waiting && now.Parkings == s.Parkings
}
