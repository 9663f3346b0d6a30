package replica

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/admission"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/answer"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/deadline"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/locate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/fair"
)

// Replica is the state of one partition. It is not safe for concurrent use.
type Replica struct {
	// Gate decides which submits come in.
	*admission.Gate
	// Lists are the tasks by tasklist, and what matching knows of them.
	*dispatch.Lists
	cfg Config

	// tasks holds every task in memory by id, and those that have left recently.
	tasks map[ids.TaskID]*Entry
	gone  gone
	past  pastStays
	wake  deadline.Heap[*Entry]
	// eventAt is the last event read.
	eventAt   uint64
	snapshots snapshots
	// live counts the tasks that have not left.
	live int
	// epoch is that of the owner.
	epoch uint64
	still standstill

	// locator keeps what is asked about tasks that are not in memory.
	locator *locate.Locator
	// lines are those of order keys.
	lines   *line.Lines
	answers answer.Answers

	outbox
	// own are the events that the owner proposes; appending: some are on their way to the log.
	own       []Proposal
	appending bool

	// replay is not nil until the takeover is over.
	replay *replay

	// Members counts the tasks of batches that have been admitted, and their ends.
	Members batch.Counts

	lease    lease
	purger   purger
	saving   *Checkpoint
	savedAt  int64
	draining bool
}

// outbox is what the other stores must still get.
type outbox struct {
	archive, park ledger
	// unlogged goes there once the next turn is stored.
	unlogged unlogged
	// letters are the dead letters of the tasks that were brought back and are not in the timer store yet.
	letters map[ids.TaskID]Letter
	// parkLetters are those of them that the job under way deletes.
	parkLetters []Letter
}

// Entry is one stay of a task, with what the replica keeps about it.
type Entry struct {
	taskstate.Task
	// Entry is that of its tasklist; its Task is the one here.
	dispatch.Entry
	wakeup deadline.Entry
	// charged is what it takes of its lane's room, in bytes; 0 = nothing.
	charged int32
	// shared: domains share its message.
	shared bool
	// proposed are the kinds of events that are on their way to the log for it.
	proposed uint16
	// left: it is out of memory but for repeated questions.
	left bool
	// exempt: a snapshot found it running, so it takes no room while it runs.
	exempt bool
	// storing: the job under way stores it in the timer store. unlogged: it is in Replica.unlogged.
	storing, unlogged bool
	// arrivedAt is the time of its submit record, or of the redrive that brought it back, Unix ms.
	arrivedAt int64
}

// replay is what only a takeover needs: the checkpoint that it found, and what the other stores have behind that.
type replay struct {
	base     Checkpoint
	parked   map[Stay]bool
	archived Ends
}

// gone is the tasks that have left, oldest first. They answer as the other
// stores would.
type gone struct {
	queue []goneEntry
	bytes int
	// fresh are those that came since the last sweep, the next of which is due at sweepAt,
	// Unix ms.
	fresh   int
	sweepAt int64
	// max and bytesMax are goneMax and goneBytesMax, less in tests.
	max, bytesMax int
}

type goneEntry struct {
	e    *Entry
	size int
}

// pastStays tells of tasks that left and were forgotten which stays of them are over, so that a
// submit is known again that was stored twice and is read late. By task it is the first stay that may still come; over for a task that has
// finished for good. Tasks are added to young; once that has pastMin it is old, and what was old is forgotten.
type pastStays struct{ young, old map[ids.TaskID]uint32 }

// snapshots is what is known of the snapshots of this owner. One is made at a time.
type snapshots struct {
	// current is the one that the saved checkpoint names, next one that is stored and not named so far.
	current, next SnapshotRef
	// due: one is made of the next turn. making: one is being stored, of which the log may forget so much once a checkpoint names it.
	due, making bool
	levels      Levels
	// bytes is how much has followed the last one, of size bytes, made at a time, Unix ms: bytes of the log, and one for each task
	// that has left the state.
	bytes, size, at int64
	// savedAt is when a checkpoint named the last one, Unix ms; 0 = this owner has made none.
	savedAt int64
}

// unlogged is what the next turn is wanted for besides events.
type unlogged struct {
	// entries are tasks that came to be sent to another store, by no event. Until the turn that admits them is stored, they stay: who takes over before
	// that admits them again.
	entries []*Entry
	// notBefore is when a turn may be asked for again, after the log has refused one, Unix ms.
	notBefore int64
	// admitting: commands that have waited for a task are applied to it as it comes.
	admitting bool
}

// standstill is what is known of how the log moves. It only decides when to propose that a lease is over.
type standstill struct {
	// heardAt is when the last event came, Unix ms by our clock; in a takeover by the log's.
	heardAt int64
	// endedAt is the log's time of the first event behind the last standstill; until graceUntil the workers of
	// attempts from before it may be heard.
	endedAt, graceUntil int64
	// asks: the log is to be asked whether it moves.
	asks bool
}

// lease is until when the owner may go on, and how long a saved checkpoint prolongs that; 0 = LeaseFor.
type lease struct{ until, lasts time.Duration }

// purger decides what may be purged.
type purger struct {
	// covered are levels and since when a saved checkpoint has named a snapshot of them, oldest first.
	covered []coveredSince
	// taken is how many of them are being purged.
	taken int
	busy  bool
	next  int64
}

type coveredSince struct {
	levels Levels
	since  time.Duration
}

// ledger is the way into another store: tasks are queued, handed out in jobs, one at
// a time and domains in turn, and are stored when their job is.
type ledger struct {
	queue fair.Queue[*Entry]
	busy  []*Entry
	// last is where the store stands: what this owner has stored up to there has left memory.
	last uint64
	// oldest is when the first of the queue came, Unix ms.
	oldest int64
}
