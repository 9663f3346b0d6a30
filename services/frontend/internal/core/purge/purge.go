// Package purge decides how the passes of a purge follow each other, and when it is over.
//
// A purge goes through a list of tasks in steps, and through the list again in passes: a pass makes room in memory for tasks that are on disk only,
// which the next one finds.
//
// Owns: the cursor of a purge, which is all that a step knows of those before it.
//
// Never does: read the list, or cancel a task.
//
// On failure: a cursor that no step has returned is none.
package purge

import (
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// IdleMin is after how many passes in a row that found nothing a purge ends if all is read, IdleMax if it is not.
const IdleMin, IdleMax = 5, 10

// Passes are those of a purge so far.
type Passes struct {
	// Before is behind the newest task of the purge.
	Before ids.TaskID
	// Begins: a pass begins. Again: another one must follow, since this one has cancelled tasks, or left some undecided, or
	// something was unread when it began.
	Begins, Again bool
	// Idle is how many passes in a row before this one have cancelled nothing; Busy: this one has.
	Idle int
	Busy bool
	// Later: this is not the first pass. Running tasks are asked to stop in the first one only.
	Later bool
}

// Parse reads a cursor. At is where the list of tasks goes on, or empty where a pass begins.
func Parse(cursor string) (p Passes, at string, ok bool) {
	const parts = 6
	c := strings.Split(cursor, ".")
	if len(c) != parts {
		return p, "", false
	}
	var noID, noNumber error
	p.Before, noID = ids.ParseTaskID(c[0])
	p.Busy, p.Again, p.Later = c[2] == "1", c[3] == "1", c[4] == "1"
	p.Idle, noNumber = strconv.Atoi(c[5])
	return p, c[1], noID == nil && noNumber == nil && p.Idle >= 0
}

// Cursor is what Parse reads.
func (p Passes) Cursor(at string) string {
	flag := func(b bool) string {
		if b {
			return "1"
		}
		return "0"
	}
	return strings.Join([]string{p.Before.String(), at, flag(p.Busy), flag(p.Again), flag(p.Later), strconv.Itoa(p.Idle)}, ".")
}

// Unread reports how many messages of the log are unread when a pass begins.
func (p *Passes) Unread(n int64) { p.Again = n > 0 }

// Took reports how many tasks a step has cancelled, and how many it has left undecided.
func (p *Passes) Took(cancelled, undecided int64) {
	p.Busy, p.Again = p.Busy || cancelled > 0, p.Again || cancelled+undecided > 0
}

// Next is the cursor of the step that follows; empty = the purge is over. At is where the list goes on, or empty where it ends. The purge is over after
// some passes in a row that had nothing to cancel, if all was read when the last began (what is unread is counted again each second only), or if many in
// a row had nothing: what is unread is not read now, or comes faster than it is read. A preview is one pass.
func (p Passes) Next(at string, preview bool) string {
	if at != "" {
		return p.Cursor(at)
	}
	if p.Idle++; p.Busy {
		p.Idle = 0
	}
	if preview || !p.Again && p.Idle >= IdleMin || p.Idle >= IdleMax {
		return ""
	}
	p.Busy, p.Again, p.Later = false, false, true
	return p.Cursor("")
}
