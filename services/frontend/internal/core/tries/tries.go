// Package tries says what the tries of one request may do at which age (decision 0023).
//
// A request with an id is stored once, however often and through whichever frontends it is sent. Its tasks have the same ids each
// time, but for the partition. Two kinds of tries put them into the log:
//
//   - The first try of a client that counts goes with the group commit, to any partition. It is void if the log takes
//     it later than AliveFor after the request's time, and nothing else makes sure that no copy comes later.
//   - Every other try goes alone, to the home partition, in a message whose id is the request's: the log refuses a
//     second one for a while that is longer than any try may live.
//
// A try that may not be the first searches for the tasks before. A task that it does not find once all first tries are void
// was not stored by one of those, nor ever will be. Past AppendUntil it only searches.
//
// Owns: the ages, and since when copies of an update may be in the log (decision 0043).
// Never does: read a clock.
// On failure: nothing here fails.
package tries

import "time"

const (
	// FreshFor is the age up to which a first try goes with the group commit, and an uncounted one does not search
	// for another first.
	FreshFor = 3 * time.Second
	// SendUntil is the age up to which a first try is sent to the log, AliveFor up to which the log may take it.
	SendUntil, AliveFor = 4 * time.Second, 6 * time.Second
	// TryAliveFor is how long after it has searched the log may take any other try, LastAlive the age up to which it
	// may take one at all. The log knows the message's id for longer.
	TryAliveFor, LastAlive = 20 * time.Second, 90 * time.Second
	// Void is the age from which all tries that the log has not taken are void.
	Void = LastAlive + ClocksApart
	// AppendUntil is the age up to which a try is sent to the log.
	AppendUntil = time.Minute
	// RepeatMax is the age up to which a request is answered at all. Domains keep finished tasks for longer.
	RepeatMax = 10 * time.Minute
	// AheadMax is how far the client's clock may be ahead: ids date their tasks.
	AheadMax = 2 * time.Second
	// ClocksApart is how much the log's clock and ours may differ, and those of the servers that lead the log in turn.
	ClocksApart = 1500 * time.Millisecond
	// SkewReported is the age, or the time ahead, from which the answer to a first try tells the server's clock.
	SkewReported = time.Second
	// FirstTryFor is how old a request is at least when its second try is sent: a client that counts its tries waits that long for the answer to the
	// first one.
	FirstTryFor = 5 * time.Second
)

// anyTime is a time before all that is in the log, Unix ms.
const anyTime = 1

// CopiesSince is a time before which no try of a request is in the log, Unix ms: the request's id has its time, by a clock that may be ahead. Known
// is false if the age of the request is not known.
func CopiesSince(made, now time.Time) (sinceMS int64, known bool) {
	if made.Sub(now) > AheadMax {
		return anyTime, false
	}
	return made.Add(-AheadMax - ClocksApart).UnixMilli(), true
}

// Dates are what the updates of a request say of their copies: since when copies may be in the log, and until when the first one is alone, both Unix ms, 0 = it is not. Early is
// for how long a second try comes too early: the first one may be alone still.
func Dates(made, now time.Time, tried int32) (sinceMS, soleUntilMS int64, early time.Duration) {
	sinceMS, known := CopiesSince(made, now)
	switch {
	case !known: // nor is its age
	case tried == 1:
		soleUntilMS = made.Add(FirstTryFor - ClocksApart).UnixMilli()
	case tried > 1:
		early = max(0, FirstTryFor-now.Sub(made))
	}
	return sinceMS, soleUntilMS, early
}

// Age is what is wrong with the age of a request.
type Age uint8

// The ages.
const (
	Fine Age = iota
	// Ahead: its time is further ahead than clocks may be.
	Ahead
	// Forgotten: it is too old for an answer.
	Forgotten
	// FirstOld: it is a first try, and too old for one. There is no other try, so the client's clock is behind. A new id by the same clock would end here
	// too. Nothing is asked first: a late answer is the one that would leave the client in doubt.
	FirstOld
)

// Check checks the age of a try. Alone: no other server can have taken an earlier try.
func Check(age time.Duration, tried int32) (bad Age, alone bool) {
	alone = tried <= 1
	switch {
	case age < -AheadMax:
		return Ahead, alone || age < -AheadMax-ClocksApart
	case age > RepeatMax:
		return Forgotten, alone
	case age > AppendUntil && tried == 1:
		return FirstOld, alone
	}
	return Fine, alone
}
