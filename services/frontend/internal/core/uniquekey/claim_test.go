package uniquekey

import (
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// TestClaims: which questions lead to which result.
func TestClaims(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	own, other := ids.NewTaskID(now, 0, 1), ids.NewTaskID(now, 0, 2)
	ended := Holder{Exists: true, FinishedAt: now.UnixMilli() - 1}
	taken := Head{Seq: 7, Task: other, At: now}
	old := Head{Seq: 7, Task: other, At: now.Add(-unsureAfter - time.Second)}
	free := Head{Seq: 7, Task: other, At: now, FreeAt: 1}
	for name, c := range map[string]struct {
		claim  Claim
		head   Head
		holder Holder
		away   bool // the owner of the holder
		found  bool // the task itself
		want   []Ask
	}{
		"a new key":             {want: []Ask{Read, Write}},
		"a free key":            {head: free, want: []Ask{Read, Write}},
		"its own":               {head: Head{Seq: 7, Task: own, At: now}, holder: Holder{Exists: true}, want: []Ask{Read, Find, Created}},
		"its own, void":         {head: Head{Seq: 7, Task: own, At: now}, want: []Ask{Read, Find, Write}},
		"taken":                 {head: taken, holder: Holder{Exists: true}, want: []Ask{Read, Owner, Existing}},
		"taken, to be rejected": {claim: Claim{Rejects: true}, head: taken, holder: Holder{Exists: true}, want: []Ask{Read, Owner, Rejected}},
		"taken, ended":          {head: taken, holder: ended, want: []Ask{Read, Owner, Write}},
		"taken, no answer":      {head: taken, holder: ended, away: true, want: []Ask{Read, Owner, Existing}},
		"taken for a while":     {head: Head{Seq: 7, Task: other, At: now, FreeAt: now.UnixMilli() + 1}, want: []Ask{Read, Existing}},
		"taken long ago":        {head: old, holder: Holder{Exists: true}, want: []Ask{Read, Find, Existing}},
		"taken by none":         {head: old, want: []Ask{Read, Find, Write}},
		"replaces":              {claim: Claim{Replaces: true}, head: taken, holder: Holder{Exists: true}, want: []Ask{Read, Owner, Replace, Existing}},
		"replaces none":         {claim: Claim{Replaces: true}, head: free, want: []Ask{Read, Write}},
		"has replaced":          {claim: Claim{Replaces: true, Repeats: true}, head: free, want: []Ask{Read, Replace, Write}},
		"was to replace":        {claim: Claim{Replaces: true, Asked: other}, head: free, want: []Ask{Replace, Read, Write}},
		"of a batch":            {claim: Claim{Batch: true}, head: free, want: []Ask{Read, FindOwn, Write}},
		"of a batch, stored":    {claim: Claim{Batch: true}, head: free, found: true, want: []Ask{Read, FindOwn, Created}},
		"of a batch, replaces":  {claim: Claim{Batch: true, Replaces: true}, head: taken, holder: Holder{Exists: true}, want: []Ask{Read, Owner, FindOwn, Replace, Existing}},
		"of a batch, taken":     {claim: Claim{Batch: true}, head: taken, holder: Holder{Exists: true}, want: []Ask{Read, Owner, Existing}},
	} {
		claim := c.claim
		claim.Task = own
		var got []Ask
		for len(got) < 10 {
			ask, of := claim.Next()
			got = append(got, ask)
			if mine := ask == FindOwn || ask == Created; ask != Read && ask != Write && mine != (of == own) && ask != Find {
				t.Errorf("%s: %d is about task %v", name, ask, of)
			}
			if over, done := answer(&claim, ask, c.head, c.holder, !c.away, c.found, now); done {
				if ask == Write && over != c.head.Seq {
					t.Errorf("%s: it is written over %d", name, over)
				}
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// answer answers a question of a claim, unless it is decided.
func answer(c *Claim, ask Ask, head Head, holder Holder, answered, found bool, now time.Time) (over uint64, done bool) {
	switch ask {
	case Read:
		c.Head(head, now)
	case Owner:
		c.Owned(holder, answered, now)
	case Find:
		c.Found(holder, now)
	case FindOwn:
		c.FoundOwn(found)
	case Replace:
		c.NotReplaced()
	default:
		return c.Over(), true
	}
	return 0, false
}
