package due

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

// Wanted is a task that somebody wants fired now.
type Wanted struct {
	ID ids.TaskID
	// Domain is the caller's; empty = a service of ours. A task of another domain
	// is left alone and not reported.
	Domain string
}

// EarlyMessage is an early message to append to a bucket. All are of one tasklist.
type EarlyMessage struct {
	Bucket           int64
	Domain, Tasklist string
	All              []Early
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
// messages take effect when they are loaded. Tasks that are due by nowMS need none. Those that are not near are brought near before; those whose bucket is
// being loaded are Coming and need to be asked for again.
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
		if status == Waiting && !stay.Early && stay.DueMS > nowMS {
			needed = append(needed, stay)
		}
	}
	return needed, a
}

// EarlyMessages are those that have stays fire early, by bucket and tasklist.
func EarlyMessages(all []Stay) (messages []EarlyMessage) {
	type place struct {
		bucket           int64
		domain, tasklist string
	}
	at := map[place]int{}
	for _, stay := range all {
		to := place{stay.Bucket, stay.Group.Domain, stay.Group.Tasklist}
		i, ok := at[to]
		if !ok {
			i = len(messages)
			at[to] = i
			messages = append(messages, EarlyMessage{Bucket: to.bucket, Domain: to.domain, Tasklist: to.tasklist})
		}
		messages[i].All = append(messages[i].All, Early{
			ID: stay.ID, Generation: stay.Parkings, Place: far.Place{Seq: stay.Seq, Index: stay.Index}, Bytes: uint32(stay.Bytes),
		})
	}
	slices.SortStableFunc(messages, func(a, b EarlyMessage) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return messages
}

// Waits reports whether a stay that was near has not been fired.
func (t *Table) Waits(s Stay) bool {
	now, status := t.Find(s.ID, "")
	return status == Waiting && now.Parkings == s.Parkings
}
