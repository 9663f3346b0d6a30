package dispatch

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/nottaken"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Config is what lists need to know.
type Config struct {
	// Shards is how many matching shards there are.
	Shards int
	// Partitions tells how many partitions a tasklist has; nil = each has one.
	Partitions func(domain, tasklist string) int
	// SlowAfter returns after how long tasks of a domain are late, and attempts of a type of it stuck, ms; 0 = they never are; a nil stuckMS = no attempt is; nil = none
	// ever is.
	SlowAfter func(domain string) (lateMS int64, stuckMS func(typ string) int64)
	// Paused returns which tasks of a domain are paused now; nil = none is. It is for metrics only, and may be nil itself.
	Paused func(domain string) func(tasklist, typ, group string) bool
}

// Lists are the tasks of a partition by tasklist. They are not safe for concurrent use.
type Lists struct {
	cfg   Config
	lists map[tasklistKey]*tasklist
	DomainLists
	// order is all lists, in an order that does not depend on a map; idle are columns that have had no tasks for a
	// while, the longest first.
	order []*tasklist
	idle  []*column
	Shards
	// turn counts the turns, from 1. releases are where the releases of this one are gathered, groups where the groups
	// of tasks are among those of its triggers.
	turn     uint64
	releases map[releaseKey]int
	groups   map[groupKey]uint64
	sweep    sweep
	longest  longestWait
	nottaken.Waits
	// slowAt is when tasks that are late or stuck are searched next, slowFrom the tasklist that comes first then.
	slowAt   time.Duration
	slowFrom int
}

// Entry is a task of the lists. It lies beside the task, and its exported fields are set there.
type Entry struct {
	*taskstate.Task
	// Index is its place in the message it was submitted with.
	Index int32
	// at is its place among the tasks of its domain.
	at int32
	// Seat is its place among the tasks of its order key; nil = it has none, or has not come to its line.
	Seat *line.Seat
	// counted is the state under which its tasklist counts it: its own, but ready in Backoff once it is due by our clock.
	counted taskstate.State
	// waits: its trigger was sent, at triggeredAt, Unix ms, and it waits for a grant. booked: it runs, and its attempt holds a slot.
	// reported: it was found slow while it has waited, or has run, this time.
	waits, booked, reported bool
	triggeredAt             int64
	column                  *column
	// grant: its running attempt may not have reached its worker.
	grant *grant
	// before and after are its neighbours among the tasks of its tasklist that wait for a grant, if waits, or among
	// those that run, if counted says so: those whose attempt holds a slot, if booked, or the others.
	before, after *Entry
}

type tasklistKey struct{ domain, tasklist string }

// tasklist is the tasks of one tasklist in this partition.
type tasklist struct {
	key tasklistKey
	// shard is that of its first partition.
	shard  int
	active [taskstate.Lapsed + 1]int64
	// Ends since this owner took over, or since the list was forgotten.
	completed, dead, expired int64
	// Attempts that started and that failed since then, tasks that came, and those of them that came for the first time.
	started, failed int64
	came, admitted  int64
	// oldestReadyAt is since when its oldest ready task was ready as FindOldest last looked, Unix ms; 0 = none was.
	oldestReadyAt int64
	columns       map[columnKey]*column
	packs         map[packKey]*pack
	// groups are those of its columns.
	groups map[string]*groupTasks
	// at is its place in Lists.order, ofDomain that among the lists of its domain.
	at, ofDomain int
	domain       *domain
	// turn says which partition tasks are given now. spread: it has, or has had, columns of partitions besides the first one.
	turn   partitionTurn
	spread bool
	// sent are its tasks that wait for a grant, the one whose trigger was sent first at the front. So what is to be
	// triggered again is found without looking at the rest.
	sent entryList
	// here are those that run of its own shard, elsewhere those of others, by taskstate.Attempt.Shard.
	here      runs
	elsewhere map[uint16]*runs
}

// column is the tasks of one partition, type, priority, cost and group of a tasklist: matching grants them in the order
// in which they became ready.
type column struct {
	key  columnKey
	list *tasklist
	// tasks counts those in memory. idle: it is in the queue of idle columns.
	tasks int
	idle  bool
	// grantedReadyAt is the latest ReadyAt among those granted. A task that was ready well before, and was not granted,
	// has been overtaken: its trigger is lost.
	grantedReadyAt int64
	pack           *pack
	// of counts the tasks of its group; nil = they have none.
	of *groupTasks
}

// groupTasks counts the tasks of one group of a tasklist, and its columns.
type groupTasks struct {
	backlog.Held
	columns int
}

type columnKey struct {
	packKey
	group string
}

// pack is where the triggers of one partition, type, priority and cost of a tasklist are gathered, those of all its groups together.
type pack struct {
	packRef
	// shard is where they go.
	shard int
	// columns counts those that gather there.
	columns int
}

type packKey struct {
	taskType            string
	priority, partition int32
	cost                int32
}

// packRef is a place in the effects of a turn.
type packRef struct {
	turn uint64
	i    int
}

// groupKey is a group of tasks in one of the effects of a turn.
type groupKey struct {
	i    int
	name string
}

// releaseKey is what the attempts of a group have in common.
type releaseKey struct {
	shard                  int
	domain, taskType, path string
}

// partitionTurn is which partition of a tasklist tasks are given now.
type partitionTurn struct {
	// of is the turn in which it was chosen; 0 = none is yet.
	of uint64
	at int32
	// given is how many tasks have got it.
	given int32
}

// runs are the tasks of a tasklist that run, of one shard: those whose attempt holds a slot, and the others.
type runs struct{ booked, unbooked entryList }

// entryList is some tasks of a tasklist, in the order in which they came. A task is in one list at most.
type entryList struct{ first, last *Entry }

// sweep is a walk through all tasks that wait for a grant, some at each tick.
type sweep struct {
	beginsAt int64
	running  bool
	// list is where it is in Lists.order, next is the task that it has come to there.
	list int
	next *Entry
}

// longestWait is since when the task is ready that has waited longest for a grant, Unix ms; 0 = none waits. next is
// when it is looked for again.
type longestWait struct {
	readyAt int64
	next    time.Duration
}

// Shards are the matching shards that have written to the log, by their number there.
type Shards struct{ by map[uint32]*shard }

// shard is what the log says of one matching shard: which of its owners is the newest, and what they may not have
// delivered.
type shard struct {
	number uint32
	// epoch is that of the newest fence; 0 = there was none.
	epoch uint64
	// owners are the deliveries of each owner, by epoch.
	owners []*deliveries
}

// grant is an attempt that may not have reached its worker.
type grant struct {
	// of has it, among those of the other batches; its own is of number request.
	of      *deliveries
	request uint64
	poll    *Poll
	// before and after are its neighbours there.
	before, after *Entry
	// reported: its shard has asked for it, to send it again.
	reported bool
}

// deliveries are the attempts that one owner of a shard may not have delivered, in the order of the numbers of its batches. It is
// not part of what owners of the partition have to agree about: what follows from it is proposed to the log.
type deliveries struct {
	shard            *shard
	epoch, delivered uint64
	first, last      *Entry
}

// Poll is the poll that matching has grabbed for.
type Poll struct {
	// Domain is whose tasks it gets.
	Domain string
	Worker *taskstate.Worker
	// ReplyTo is the inbox in which it waits.
	ReplyTo string
	JSON    bool
	// Max is how many tasks it takes, BytesMax how many bytes of them its batch may grant to it, the first task apart; 0 = any number.
	Max      int32
	BytesMax int64
}
