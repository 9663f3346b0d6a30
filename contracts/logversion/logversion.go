// Package logversion says which formats of stored records this program writes and
// reads.
//
// Owns: the number of the newest format, the range that this program reads, how a
// record carries its number, and the error for a number that is not known.
//
// Never does: know what changed between two formats, or ask the cluster; package
// catalog does that. A cluster writes one format at a time: the smallest that
// every program in it reads, raised by `yard upgrade finalize`.
//
// On failure: an unknown format is an *UnknownError. Who meets one stops, hands its
// partition over and raises an alarm; it skips nothing (I13).
package logversion

import (
	"fmt"
	"strconv"
	"sync"
)

const (
	// First is the format that records without a number have.
	First = 1
	// Fences is the format since which matching shards fence in the log, batches name the shard
	// that wrote them, and what no worker received expires without cost.
	Fences = 2
	// NotAfter is the format since which an expiry is void that the log takes too late.
	NotAfter = 3
	// Queues is the format since which a checkpoint may hold the cursors of domains that lag behind
	// their lane, grabs name their domain, and positions tell whether domains share a message.
	Queues = 3
	// Within is the format since which a submit may be void that the log takes too late.
	Within = 4
	// Headers is the format since which tasks may have headers.
	Headers = 4
	// Expiry is the format since which tasks may expire.
	Expiry = 5
	// Levels is the format since which an attempt may need slots of several limits: of its domain, its
	// tasklist, its type, and those that types share.
	Levels = 6
	// Groups is the format since which tasks may have a group.
	Groups = 7
	// Rates is the format since which attempts may have to wait for a rate.
	Rates = 7
	// Partitions is the format since which a tasklist may have several partitions: an attempt names the matching shard that
	// holds its slots, and polls may be sent on.
	Partitions = 8
	// PerGroup is the format since which a limit may count per group: history tells the groups of what runs.
	PerGroup = 8
	// Shadow is the format since which a limit may be in shadow: an older matching owner would hold up what it covers.
	Shadow = 9
	// Scales is the format since which the engine may set the number of partitions of a tasklist: an older node would go by the settings.
	Scales = 9
	// Cost is the format since which a task may use several starts of a rate.
	Cost = 9
	// RetryRules is the format since which a policy may tell error types apart, limit deliveries, choose a jitter, and say what
	// follows lost attempts and time-outs.
	RetryRules = 9
	// Weighted is the format since which a poll may name several tasklists by weight: an older matching owner would keep such a poll.
	Weighted = 9
	// GroupStops is the format since which groups may be paused and drained, and named by lists, purges and caps of queues: an older
	// program would take a purge of one group for one of all.
	GroupStops = 9
	// OnFull is the format since which a limit that is full may end what waits for it, or make room: history knows the events.
	OnFull = 9
	// Snooze is the format since which an attempt may be put off: an older owner would count a failure.
	Snooze = 9
	// UniqueKeys is the format since which tasks may have a unique key: an older owner would not give the key back.
	UniqueKeys = 10
	// OrderKeys is the format since which tasks may have an order key: an older owner reads no such tasks, and would run them at once.
	OrderKeys = 10
	// Alive is the format since which the attempts of a silent worker end before their leases: an older owner would refuse that.
	Alive = 10
	// Updates is the format since which tasks may be changed: an older owner does not know the event.
	Updates = 10
	// Redrives is the format since which dead letters may be brought back: an older owner does not know the event, nor that a task that is dead
	// may have another stay.
	Redrives = 10
	// KeyCommands is the format since which operators skip and unblock order keys: an older owner does not know the events.
	KeyCommands = 10
	// Batches is the format since which tasks may be members of a batch: an older owner would not count how they end.
	Batches = 10
	// Copies is the format since which updates say since when copies of them may be in the log: an older owner would make one again that its task has forgotten.
	Copies = 11
)

// newest is the newest format that this program reads and writes. A build raises
// it, for tests of programs of two versions side by side:
//
//	go build -ldflags "-X github.com/yardmaster-io/yardmaster/contracts/logversion.newest=12"
var newest = "11"

var parsed = sync.OnceValue(func() uint32 {
	v, err := parse(newest)
	if err != nil {
		panic(err) // the build is wrong, so nothing may start
	}
	return v
})

func parse(text string) (uint32, error) {
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil || v < First {
		return 0, fmt.Errorf("logversion: this program was built with the log version %q, want a number from %d on", text, First)
	}
	return uint32(v), nil
}

// Newest is the newest format that this program reads and writes.
func Newest() uint32 { return parsed() }

func ReadMax() uint32  { return parsed() }
func WriteMax() uint32 { return parsed() }

// Of is the format of a record that carries v: 0, which stands for an absent
// number, is First.
func Of(v uint32) uint32 { return max(v, First) }

// Field is what a record of format v carries. First is left out, so that its
// records are byte for byte those of programs that knew no versions.
func Field(v uint32) uint32 {
	if v <= First {
		return 0
	}
	return v
}

// Check returns an *UnknownError where this program cannot read a record that
// carries v.
func Check(v uint32) error {
	if v > Newest() {
		return &UnknownError{Version: v, Newest: Newest()}
	}
	return nil
}

// UnknownError is a record, or a cluster, of a format that this program does not
// know.
type UnknownError struct {
	// Version is the format met, Newest the newest that is known.
	Version, Newest uint32
}

// Error says what to do.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("log version %d is not known to this program, which reads up to %d: run a newer version of it", e.Version, e.Newest)
}
