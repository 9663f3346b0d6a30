package intake

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var made = time.Unix(1_700_000_000, 0)

// walk is a share at an age.
type walk struct {
	Share
	t   *testing.T
	age time.Duration
}

func begin(t *testing.T, terms Terms) *walk {
	w := &walk{t: t}
	terms.Made, terms.Deadline = made, made.Add(5*time.Minute)
	w.Start(terms)
	return w
}

func (w *walk) now() time.Time { return made.Add(w.age) }

// does expects steps, one after the other, and reports what is expected of the first ones.
func (w *walk) does(want ...Do) Step {
	w.t.Helper()
	var step Step
	for i, do := range want {
		if step = w.Next(w.now()); step.Do != do {
			w.t.Fatalf("step %d is %d, want %d: %+v", i, step.Do, do, step)
		}
		switch last := i == len(want)-1; {
		case last, do == Wait:
		case do == Search:
			w.Searched(false, true)
		case do == Count:
			w.CountedAs(false)
		case do == Place:
			w.Placed(true, false)
		case do == Check:
			w.Checked(Checks{Left: 1})
		default:
			w.t.Fatalf("what comes of step %d is not said", do)
		}
	}
	return step
}

// ends expects the end.
func (w *walk) ends(kind Kind, why Why) End {
	w.t.Helper()
	end := w.does(Finish).End
	if end.Kind != kind || end.Why != why {
		w.t.Fatalf("it ended as %+v, want %d for %d", end, kind, why)
	}
	return end
}

func (w *walk) appended(o Outcome) { w.Appended(o, w.now()) }

func TestAFirstTryMovesToTheNextPartition(t *testing.T) {
	w := begin(t, Terms{Guard: First, HasID: true, Tries: 1})
	step := w.does(Count, Place, Append)
	testkit.Equal(t, "it may be taken within", step.Within, tries.AliveFor)
	w.appended(NotSent)
	w.does(Place, Append)
	w.appended(NoRoom)
	w.does(Place, Append)
	w.age = tries.SendUntil + time.Millisecond
	w.appended(NotSent)
	if end := w.ends(NotStored, Late); !end.Certain || end.ForGood {
		t.Errorf("it ended as %+v", end)
	}
}

// TestAFirstTryOfUnknownOutcomeIsSentAgain, whatever the repeat is refused for, until it is acknowledged or its time is over.
func TestAFirstTryOfUnknownOutcomeIsSentAgain(t *testing.T) {
	for _, acknowledged := range []bool{true, false} {
		w := begin(t, Terms{Guard: First, Batch: true})
		w.does(Count, Place, Append)
		for _, refused := range []Outcome{NoAnswer, NotSent, NoRoom, Superseded} {
			w.appended(refused)
			w.does(Wait, Resend)
		}
		if acknowledged {
			w.appended(Duplicate)
			w.ends(Stored, 0)
		} else {
			testkit.Equal(t, "at the deadline it is", w.Expired().End.Kind, Unknown)
		}
	}
}

// TestAnAcknowledgementThatIsLateIsVerified: the log may have taken the message too late.
func TestAnAcknowledgementThatIsLateIsVerified(t *testing.T) {
	for _, stored := range []bool{true, false} {
		w := begin(t, Terms{Guard: First, HasID: true, Tries: 1})
		w.does(Count, Place, Append)
		w.age = tries.AliveFor - tries.ClocksApart
		w.appended(Acknowledged)
		w.does(Verify)
		w.Verified(false, false)
		w.does(Wait, Verify)
		if w.Verified(stored, true); stored {
			w.ends(Stored, 0)
		} else if !w.ends(NotStored, TakenLate).Certain {
			t.Error("it is void, and may be stored")
		}
		k := begin(t, Terms{Guard: Keyed, HasID: true, Tries: 1})
		k.does(Count, Append)
		k.age = tries.AliveFor - tries.ClocksApart
		k.appended(Acknowledged)
		k.does(Wait, Check)
	}
}

func TestARepeatSearchesBeforeItIsStored(t *testing.T) {
	w := begin(t, Terms{Guard: Named, HasID: true, Tries: 2})
	w.age = time.Second
	w.does(Search)
	w.Searched(false, false)
	w.does(Wait, Search)
	w.Searched(false, true)
	wait := w.does(Wait)
	testkit.Equal(t, "it waits until first tries are void", w.age+wait.For, tries.AliveFor+tries.ClocksApart)
	w.age += wait.For
	step := w.does(Search, Count, Append)
	testkit.Equal(t, "it may be taken within", step.Within, w.age+tries.TryAliveFor)
	w.appended(NoAnswer)
	w.does(Wait, Search)
	w.Searched(true, true)
	if end := w.ends(Stored, 0); end.Certain || end.Wrote {
		t.Errorf("it ended as %+v", end)
	}
}

// TestATryThatIsTooOldIsOnlySearchedFor, and is refused once no try may be stored any more.
func TestATryThatIsTooOldIsOnlySearchedFor(t *testing.T) {
	for _, guard := range []Guard{Named, Keyed} {
		w := begin(t, Terms{Guard: guard, HasID: true, Tries: 2})
		w.age = tries.AppendUntil + time.Second
		do := []Do{Search, Wait}
		if guard == Keyed {
			do = []Do{Search, Count, Wait}
		}
		wait := w.does(do...)
		if w.age += wait.For; w.age <= tries.Void {
			t.Errorf("it waits up to the age of %v", w.age)
		}
		w.does(Search)
		w.Searched(false, true)
		if !w.ends(NotStored, TooOld).ForGood {
			t.Error("it may be stored")
		}
	}
}

// TestACapRefusesWhatIsNotStored: an uncounted try may be the repeat of one that is.
func TestACapRefusesWhatIsNotStored(t *testing.T) {
	for _, found := range []bool{true, false} {
		w := begin(t, Terms{Guard: Named, HasID: true})
		w.does(Count)
		w.CountedAs(true)
		w.does(Search)
		if w.Searched(found, true); found {
			w.ends(Stored, 0)
		} else {
			w.ends(NotStored, OverCap)
		}
	}
	w := begin(t, Terms{Guard: Named, HasID: true})
	w.does(Count, Append)
	w.appended(NoAnswer)
	w.age = tries.FreshFor + time.Millisecond
	w.does(Wait, Search, Append) // it is counted
}

func TestAClosedBatchRefusesForGood(t *testing.T) {
	first := begin(t, Terms{Guard: First, Batch: true})
	first.does(Count, Place, Append)
	first.appended(Superseded)
	first.does(ReadClose)
	first.CloseRead(false)
	first.does(Wait, Place, Append)
	first.appended(Superseded)
	first.does(ReadClose)
	first.CloseRead(true)
	named := begin(t, Terms{Guard: Named, HasID: true, Batch: true})
	named.does(Count, Append)
	named.appended(Superseded)
	named.does(ReadClose)
	named.CloseRead(true)
	named.does(Wait, Search) // an earlier try may be stored
	named.Searched(false, true)
	keyed := begin(t, Terms{Guard: Keyed, Batch: true})
	keyed.does(Count, Append)
	keyed.appended(Superseded)
	keyed.does(Wait, Check)
	keyed.Checked(Checks{Left: 1, Closed: true})
	for _, w := range []*walk{first, named, keyed} {
		if !w.ends(NotStored, Refusal).ForGood {
			t.Error("it may be stored")
		}
	}
}

// TestAKeyThatIsTakenIsRead, and so is one whose write has an unknown outcome; then only a replacement may have changed anything.
func TestAKeyThatIsTakenIsRead(t *testing.T) {
	w := begin(t, Terms{Guard: Keyed, Conflicts: true})
	w.does(Count, Append)
	w.appended(Superseded)
	w.does(Check)
	w.Checked(Checks{Left: 1, Failed: true})
	w.does(Wait, Check)
	if end := w.Expired().End; end.Kind != Unknown {
		t.Errorf("it ended as %+v", end)
	}
	full := begin(t, Terms{Guard: Keyed})
	full.does(Count, Append)
	full.appended(NoRoom)
	full.does(Check, Append) // what has its key is answered all the same
	full.appended(NoRoom)
	if !full.ends(NotStored, StorageFull).Certain {
		t.Error("it may be stored")
	}
}

func TestJoin(t *testing.T) {
	stored, late := End{Kind: Stored, Certain: true}, End{Kind: NotStored, Why: Late, Certain: true}
	never := End{Kind: NotStored, Why: TooOld, Certain: true, ForGood: true}
	notTried := End{Kind: NotStored, Why: NotTried, Certain: true}
	for _, c := range []struct {
		ends []End
		want Answer
		of   int
	}{
		{[]End{stored, stored}, Results, 0},
		{[]End{stored, late}, SomeStored, 1},
		{[]End{notTried, late}, None, 1},
		{[]End{{Kind: NotStored, Why: Late, Certain: true, Partly: true}}, SomeStored, 0},
		{[]End{stored, never}, RestRefused, 1},
		{[]End{never, late}, None, 0},
		{[]End{late, {Kind: NotStored, Why: Late}}, NotKnown, 0},
		{[]End{stored, {Kind: Unknown}}, NotKnown, 1},
	} {
		if got, of := Join(c.ends); got != c.want || of != c.of {
			t.Errorf("%+v: %d of share %d, want %d of %d", c.ends, got, of, c.want, c.of)
		}
	}
}
