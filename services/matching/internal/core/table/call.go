package table

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Ref names one limit of a domain, such as "type/email.send".
type Ref string

// DomainRef is the limit of all attempts of the domain.
const DomainRef Ref = ids.DomainLimit

// TasklistRef is the limit of a tasklist.
func TasklistRef(tasklist string) Ref { return Ref(ids.TasklistLimit(tasklist)) }

// SharedRef is a limit that types share.
func SharedRef(limit string) Ref { return Ref(ids.SharedLimit(limit)) }

// TypeRef is the limit of a task type.
func TypeRef(typ string) Ref { return Ref(ids.TypeLimit(typ)) }

// RateRef is the rate of what a limit would cover.
func RateRef(of Ref) Ref { return "rate/" + of }

// PauseRef is the pause of what a limit would cover.
func PauseRef(of Ref) Ref { return "pause/" + of }

// PerGroupRef is the limit of each group of what a limit would cover.
func PerGroupRef(of Ref) Ref { return Ref(ids.PerGroupLimit(string(of))) }

// Of is the limit of one group, of a limit per group.
func (r Ref) Of(group string) Ref { return Ref(ids.GroupLimit(string(r), group)) }

// Group is the limit per group and the group of which r is the limit; ok is false for other limits.
func (r Ref) Group() (perGroup Ref, group string, ok bool) {
	of, group, ok := ids.GroupOfLimit(string(r))
	return Ref(of), group, ok
}

// Type is the task type whose limit it is, if it is one's.
func (r Ref) Type() (typ string, ok bool) { return ids.TypeOfLimit(string(r)) }

// Seq orders the calls of one shard about slots: by the epoch of its owner, then by
// the number of the call. Each call has its own; a call is refused where one with the same or a
// later Seq has set the entry of a limit that it names. Both numbers stay below 2^53.
type Seq struct {
	Epoch uint64
	Call  uint64
}

// Rate is how many attempts may start in a time, with bursts: the generic cell rate algorithm (GCRA, ITU-T I.371) of virtual
// scheduling. One state per limit, the theoretical arrival time of the next start, is all that is kept.
type Rate struct {
	// EveryUS is how long after one start the next one may follow, in µs, at least 1. It is a fraction where the rate asks for
	// it: 3 in a second are 333,333.33 µs apart.
	EveryUS float64
	// Burst is how many may start at once, at least 1, after a rest of as many intervals.
	Burst int
}

// Stance is how one shard stands with one limit when it makes a call.
type Stance struct {
	Ref Ref
	// Rate makes it a rate, if its EveryUS is not 0. It has no slots, so of the other fields only Ref, Unused and Shadow count.
	Rate Rate
	// Unused is how many starts the shard took with earlier calls and gives back: the attempts did not start.
	Unused int
	// Max is how many attempts may run at once, at least 1.
	Max int
	// Held is how many slots this shard's attempts use, decided or not, and how many more it
	// keeps for those to come. It is what the shard's entry is set to.
	Held int
	// Ask is how many slots more the shard wants for attempts to come. They are granted after the
	// wants, where no other shard stands in the line; at most the shard's share of what is free then.
	Ask int
	// Wait is the priority of the most urgent trigger that waits for a slot here; 0 =
	// none waits, and the shard leaves the limit's line, as it does when its wants get all
	// that they ask of this limit. To keep its place a shard shows itself, with any call that
	// names the limit, more often than every LineStale.
	Wait int
	// TTL is for how long the slots held, and those granted by the call, may be used at
	// most. The entry expires ExpiryAfter later: from then on they count as free.
	TTL time.Duration
	// Shadow: it books and counts, and holds nothing up. A shard does not wait for it: its Wait is 0. Not of a limit per group, nor of one
	// of its groups.
	Shadow bool
	// PerGroup makes it a limit per group, if its Count is not 0. It has no slots and no line, so of the other fields only Ref counts.
	PerGroup PerGroup
	// Of makes it the limit of one group: the index in Call.Stances, from 1, of the limit per group that it is one of, which comes
	// before it. Nothing is leased, so Ask is 0.
	Of int
}

// PerGroup is what a shard says about a limit that counts per group. The limits of single groups are there while a shard
// holds slots of them or waits. A shard that is complete and has no entry in one of them holds none.
type PerGroup struct {
	// Count numbers how often the shard's owner has counted what it holds, from 1, below 2^53: its shard's entries in
	// limits of single groups that are of an older count, or an older owner, are void once it is complete.
	Count uint64
	// Complete: after this call the shard has an entry wherever it holds slots.
	Complete bool
}

// Call is all that a shard asks of the tables of one domain at once. It is carried
// out in the order of its fields.
type Call struct {
	Domain string
	// Shard makes the call; Shards is how many there are.
	Shard, Shards int
	Seq           Seq
	// Epoch is the present life of the shard's triggers, from Open.
	Epoch string
	// Stances set the entries of all limits that Wants name, and of others. Each limit is
	// named once.
	Stances []Stance
	// Clear are columns whose triggers are to be forgotten.
	Clear []Place
	// Put are chunks to store. Some hundred are a good number: the store does nothing else
	// meanwhile.
	Put []Chunk
	// Wants are to be taken, one after another: each finds what those before it left.
	Wants []Want
}

// Place is one column of a tasklist.
type Place struct {
	Tasklist
	Column
}

// Outcome is what became of a Call. If Lost or Overtaken is set, nothing was changed.
type Outcome struct {
	// Lost: the shard's triggers are not of Epoch any more: open the domain again.
	Lost bool
	// Overtaken: a call with a later Seq has been carried out; by a later owner, or a
	// later one of this owner.
	Overtaken bool
	// Taken, by index of Wants.
	Taken []Taken
	// Limits, by index of Stances.
	Limits []LimitState
}

// Times of a limit, by the clock of the store.
const (
	// LineStale is for how long a shard that does not show itself keeps its place in the
	// line of a limit.
	LineStale = 3 * time.Second
	// ExpiryAfter is how much longer than it may be used a slot is counted: a shard has an
	// owner long before.
	ExpiryAfter = 5 * time.Minute
)

// LimitState is how a limit stands after a call.
type LimitState struct {
	// Used is how many slots all shards hold, this one included.
	Used int
	// Leased is how many of those that the shard asked for it was granted.
	Leased int
	// Restoring: some shard has no entry, so nothing may be booked.
	Restoring bool
	// Others: another shard waits in the line, and the limit is not restoring.
	Others bool
	// After is when the first of those that were left may start, of a rate, or any that costs one start: 0 = now.
	After time.Duration
	// Waits: the shard stands in the line of a rate. To keep its place it tries again more often than every LineStale.
	Waits bool
	// Beyond is how many of the attempts that the call took triggers for a limit in shadow would have held up: it had no slot or
	// start left for them.
	Beyond int
}

// BlockedWhy says why triggers were not taken.
type BlockedWhy uint8

// The reasons.
const (
	// Full: no slot is free.
	Full BlockedWhy = iota + 1
	// InLine: the free slots are for shards that have waited longer.
	InLine
	// Restoring: the limit lacks entries of some shards.
	Restoring
	// Rated: it is too early, by LimitState.After.
	Rated
)

// Blocked is a limit for which triggers were left.
type Blocked struct {
	// At is its index in Call.Stances.
	At  int
	By  Ref
	Why BlockedWhy
}
