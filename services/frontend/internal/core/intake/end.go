package intake

// Kind is what is known of the tasks of a share when it ends.
type Kind uint8

// The kinds.
const (
	Stored Kind = iota
	NotStored
	Unknown
)

// Why is why tasks are not stored.
type Why uint8

// The reasons.
const (
	// Late: no partition took them in time. TakenLate: the log took them later than it may.
	Late Why = iota
	TakenLate
	// TooOld: no try may be stored any more.
	TooOld
	// OverCap: a cap or a quota is reached.
	OverCap
	// StorageFull: the log has no space.
	StorageFull
	// Refusal: what they are for takes none: it is drained, or closed.
	Refusal
	// Failed: the shell knows why.
	Failed
	// NotTried: a share before this one was not stored.
	NotTried
)

// End is how a share ended.
type End struct {
	Kind Kind
	Why  Why
	// Certain: no try of this frontend may be stored. ForGood: no try of anyone is stored, nor will be.
	Certain, ForGood bool
	// Wrote: a write of this frontend was acknowledged.
	Wrote bool
	// Partly: some of its tasks have a result.
	Partly bool
}

// Answer is how a request is answered.
type Answer uint8

// The answers.
const (
	// Results: each task has a result.
	Results Answer = iota
	// RestRefused: the tasks without a result are refused for good.
	RestRefused
	// NotKnown: a repeat finds out what is stored.
	NotKnown
	// SomeStored: some tasks are stored, and some are not; a repeat stores those.
	SomeStored
	// None: nothing is stored, for the reason of the share that Join names.
	None
)

// Join is the answer to a request whose shares have ended, and which of them has the reason.
func Join(ends []End) (a Answer, of int) {
	of = -1
	some, certain, forGood := false, true, true
	for i, e := range ends {
		some = some || e.Kind == Stored || e.Partly
		if e.Kind == Stored {
			continue
		}
		if of < 0 || ends[of].Why == NotTried {
			of = i
		}
		certain = certain && e.Kind == NotStored && e.Certain
		forGood = forGood && e.ForGood
	}
	switch {
	case of < 0:
		return Results, 0
	case forGood:
		return RestRefused, of
	case !certain:
		return NotKnown, of
	case some:
		return SomeStored, of
	}
	return None, of
}
