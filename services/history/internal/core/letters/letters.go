// Package letters decides which dead letters of a domain are beyond its limits.
//
// Owns: what is too old, and which are too many. Never does: read or delete a letter, or know of redrives: a letter that one works on is left to its owner.
// On failure: nothing can fail. Numbers may be out of date: then fewer letters go, and the others the next time.
package letters

// Limits are those of a domain; 0 = none.
type Limits struct {
	// MaxAgeMS is for how long a letter is kept after its task ended.
	MaxAgeMS int64
	// Max is how many are kept, the latest.
	Max int64
}

// None tells whether there are no limits.
func (l Limits) None() bool { return l.MaxAgeMS <= 0 && l.Max <= 0 }

// Sweep goes through the letters of a domain once, those that were stored first at first. All owners of partitions do so, each for its own letters. What is beyond
// the number is counted from the oldest one, so two sweeps at a time, or one that sees letters that are gone, take no letter that none of them should.
type Sweep struct {
	limits Limits
	now    int64
	// over is how many letters are too many, and seen how many were looked at.
	over, seen int64
	begun      bool
}

// NewSweep begins one at now, Unix ms.
func NewSweep(l Limits, now int64) *Sweep { return &Sweep{limits: l, now: now} }

// Page takes in the next letters, by when their tasks ended, Unix ms, and how many lie behind them: with marks in place of letters that are gone, at most so many if
// that is sure. It tells how many letters are beyond the number, from the first on, none if the first page's number is not sure; which ones are too old; and
// whether the next page may have some too.
func (s *Sweep) Page(ended []int64, behind, marks uint64, sure bool) (over int, old []int, more bool) {
	if !s.begun {
		s.begun = true
		if s.limits.Max > 0 && sure {
			s.over = int64(len(ended)) + int64(behind) - int64(marks) - s.limits.Max
		}
	}
	over = int(min(max(0, s.over-s.seen), int64(len(ended))))
	for i := over; i < len(ended); i++ {
		if s.limits.MaxAgeMS > 0 && ended[i] < s.now-s.limits.MaxAgeMS {
			old = append(old, i)
		}
	}
	s.seen += int64(len(ended))
	last := len(ended) - 1
	more = behind > 0 && last >= 0 && (over == len(ended) || len(old) > 0 && old[len(old)-1] == last)
	return over, old, more
}
