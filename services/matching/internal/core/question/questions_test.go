package question

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// unset is a catalog in which nothing is set.
type unset struct{}

func (unset) GroupLimits(string) map[string]int { return nil }
func (unset) Strict(string, string) bool        { return false }

// limits are those of a domain, with a count of all of them.
type limits struct {
	all limit.Limits
	d   *limit.Domain
}

func newLimits() *limits {
	l := &limits{all: limit.New(unset{}, 2)}
	l.d = limit.NewDomain(&l.all, "d", func() {})
	l.d.Meet([]limit.Setting{{Ref: table.TypeRef("a"), Max: 1, Types: []string{"a"}}})
	return l
}

func (l *limits) count() *limit.Audit {
	c, _, _ := l.all.BeginCount(l.d.Met, true)
	return c
}

// always: each partition may be asked at once.
func always(int, uint64) bool { return true }

// now names the questions that are asked at an instant.
func now(s *Questions, at time.Duration) (all []string) {
	for _, q := range s.Due(at, always, nil) {
		all = append(all, fmt.Sprint(q.Kind, " ", q.Partition, " ", q.Domain))
	}
	return all
}

// An owner asks each partition what owners before have left, and knows how many have not answered.
func TestAnOwnerStarts(t *testing.T) {
	s := New(2)
	s.Start()
	due := s.Due(1, always, nil)
	testkit.MustEqual(t, "questions", len(due), 4)
	testkit.Equal(t, "partitions without an answer", s.Undelivered(), 2)
	for i, q := range due {
		l := s.Learn(&Answer{Question: q, Failed: i == 3}, 2)
		if want := q.Kind; i < 3 && l.Kind != want || i == 3 && l.Kind != 0 {
			t.Errorf("the answer to %+v is about %+v", q, l)
		}
	}
	testkit.Equal(t, "partitions without an answer", s.Undelivered(), 1)
	testkit.Equal(t, "questions that are not answered", s.Len(), 1)
	if l := s.Learn(&Answer{Question: due[0]}, 2); l.Kind != 0 {
		t.Error("a second answer is learned")
	}
}

// A question waits until its partition may be asked. The batch of grabs that it must come after is named.
func TestAQuestionWaitsUntilItMayBeAsked(t *testing.T) {
	s, l := New(2), newLimits()
	s.Count("d", []string{"a"}, l.count(), func(p int) uint64 { return uint64(10 + p) })
	ready := func(p int, after uint64) bool { return p == 1 && after == 11 }
	due := s.Due(1, ready, nil)
	if len(due) != 1 || due[0].Partition != 1 || !slices.Equal(due[0].Types, []string{"a"}) {
		t.Fatalf("asked: %+v", due)
	}
	testkit.Equal(t, "questions that are not answered", s.Len(), 2)
}

// Counts of one domain in one partition are asked for one after the other. One that was replaced is not asked for.
func TestOneCountIsUnderWayAtATime(t *testing.T) {
	s, l := New(1), newLimits()
	zero := func(int) uint64 { return 0 }
	s.Count("d", nil, l.count(), zero)
	testkit.Equal(t, "at once", now(&s, 1), []string{"3 0 d"})
	s.Count("d", nil, l.count(), zero)
	s.Count("d", nil, l.count(), zero)
	testkit.Equal(t, "while one is under way", now(&s, 1), nil)
	testkit.Equal(t, "questions that are not answered", s.Len(), 2)
	learned := s.Learn(&Answer{Question: Question{ID: 1}, Running: []limit.Running{{Type: "a", Member: "short"}}}, 1)
	testkit.Equal(t, "attempts without a name", learned.Malformed, 1)
	testkit.Equal(t, "then", now(&s, 1), []string{"3 0 d"})
}

// A question that failed is asked again after a while. One that came up again is, too, after a rest by how long it took.
func TestAQuestionIsAskedAgain(t *testing.T) {
	s, want := New(1), []string{"4 0 d"}
	s.RetriggerAll("d")
	s.Retrigger(0, "d")
	testkit.Equal(t, "at first", now(&s, 0), want)
	answer := func(failed bool, at time.Duration) Kind {
		return s.Learn(&Answer{Question: Question{ID: 1}, Failed: failed}, at).Kind
	}
	testkit.Equal(t, "learned of a failure", answer(true, 10), 0)
	testkit.Equal(t, "too early", now(&s, 10+RetryEvery-1), nil)
	testkit.Equal(t, "after a while", now(&s, 10+RetryEvery), want)
	s.Retrigger(0, "d")
	began := 10 + RetryEvery
	testkit.Equal(t, "learned of one that came up again", answer(false, began+5), 0)
	testkit.Equal(t, "too early", now(&s, began+5+AgainRest*5-1), nil)
	testkit.Equal(t, "after a rest", now(&s, began+5+AgainRest*5), want)
	testkit.Equal(t, "learned in the end", answer(false, began+5+AgainRest*5), Retrigger)
	testkit.Equal(t, "questions that are not answered", s.Len(), 0)
	s.Retrigger(0, "d")
	testkit.Equal(t, "the next one", now(&s, began), want)
}

// The round that an answer about holders is of comes back. A newer owner is known from any answer.
func TestAnAnswerAboutHolders(t *testing.T) {
	s, r := New(1), &overflow.Round{Queries: []overflow.Query{{Ref: "x", Most: 3}}}
	s.AskHolders("d", r)
	due := s.Due(0, always, nil)
	testkit.Equal(t, "limits", len(due[0].Holders), 1)
	if l := s.Learn(&Answer{Question: due[0], Superseded: true}, 0); !l.Superseded || l.Kind != 0 {
		t.Errorf("learned: %+v", l)
	}
	if l := s.Learn(&Answer{Question: due[0]}, 0); l.Round != r || l.Domain != "d" || l.Kind != Holders {
		t.Errorf("learned: %+v", l)
	}
}
