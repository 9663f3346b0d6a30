package question

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	count Kind = iota + 1
	repeat
)

// asked are what the questions are about that are asked now.
func asked(q *Queue[string], now time.Duration) (all []string) {
	for _, one := range q.Due(now, func(q *Question[string]) (drop, ready bool) { return q.About == "void", q.About != "early" }) {
		all = append(all, one.About)
	}
	return all
}

// A question is asked when it may be, and not at all if it has become void.
func TestAQuestionWaitsUntilItMayBeAsked(t *testing.T) {
	q := New[string](count)
	for _, about := range []string{"a", "early", "void", "b"} {
		q.Add(Question[string]{Kind: repeat, About: about})
	}
	testkit.Equal(t, "asked", asked(&q, 1), []string{"a", "b"})
	testkit.Equal(t, "not answered", q.Len(), 3)
	if one := q.Open(1); one == nil || one.About != "a" || q.Open(2) != nil || !q.End(one, false, 2) || q.Open(1) != nil {
		t.Error("the first one is not under way, or not over")
	}
	testkit.Equal(t, "then", q.Len(), 2)
}

// Counts of one domain in one partition are asked for one after the other.
func TestOneCountIsUnderWayAtATime(t *testing.T) {
	q := New[string](count)
	q.Add(Question[string]{Kind: count, Domain: "d", About: "first"})
	q.Add(Question[string]{Kind: count, Domain: "d", About: "second"})
	q.Add(Question[string]{Kind: count, Domain: "e", About: "other domain"})
	q.Add(Question[string]{Kind: count, Partition: 1, Domain: "d", About: "other partition"})
	testkit.Equal(t, "at once", asked(&q, 0), []string{"first", "other domain", "other partition"})
	q.End(q.Open(1), false, 0)
	testkit.Equal(t, "then", asked(&q, 0), []string{"second"})
}

// A question that failed is asked again after a while. One that came up again is, too, after a rest by how long it took.
func TestAQuestionIsAskedAgain(t *testing.T) {
	q := New[string](count)
	for range 2 {
		q.AddOnce(Question[string]{Kind: repeat, About: "x"})
	}
	testkit.Equal(t, "at first", asked(&q, 0), []string{"x"})
	if q.End(q.Open(1), true, 10) || len(asked(&q, 10+RetryEvery-1)) > 0 || len(asked(&q, 10+RetryEvery)) != 1 {
		t.Error("a failed one is asked again at another time")
	}
	q.AddOnce(Question[string]{Kind: repeat, About: "x"})
	began := 10 + RetryEvery
	if q.End(q.Open(1), false, began+5) || len(asked(&q, began+5+AgainRest*5-1)) > 0 || len(asked(&q, began+5+AgainRest*5)) != 1 {
		t.Error("one that came up again is asked again at another time")
	}
	if began += 5 + AgainRest*5; !q.End(q.Open(1), false, began) || q.Len() != 0 {
		t.Error("it is not over")
	}
	q.AddOnce(Question[string]{Kind: repeat, About: "x"})
	testkit.Equal(t, "the next one", asked(&q, began), []string{"x"})
}
