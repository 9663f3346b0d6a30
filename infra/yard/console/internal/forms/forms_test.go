package forms_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/forms"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// once sends a form that counts how often it is done.
func once(t *testing.T, f *forms.Forms, user, path, id string, at time.Time, done *int) (forms.Outcome, error) {
	t.Helper()
	return f.Once(t.Context(), user, path, id, "reason=x", at, func() forms.Outcome {
		*done++
		return forms.Outcome{Text: fmt.Sprint("done ", *done)}
	})
}

// TestAFormIsDoneOnce: however often a user sends it, at once or one after the other.
func TestAFormIsDoneOnce(t *testing.T) {
	f, id, done := forms.New(now), ids.NewRequestID(now).String(), 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			outcome, err := once(t, f, "ann", "/a", id, now, &done)
			testkit.Check(t, err)
			testkit.Equal(t, "the outcome", outcome.Text, "done 1")
		})
	}
	all.Wait()
	_, err := once(t, f, "ann", "/b", id, now, &done)
	testkit.Equal(t, "the form of another page", fault.CodeOf(err), fault.InvalidArgument)
	_, err = f.Once(t.Context(), "ann", "/a", id, "reason=y", now, func() forms.Outcome { return forms.Outcome{} })
	testkit.Equal(t, "the form with other inputs", fault.CodeOf(err), fault.InvalidArgument)
	outcome, _ := f.Outcome("ann", id)
	testkit.Equal(t, "the outcome later", outcome.Text, "done 1")
	if _, known := f.Outcome("bob", id); known {
		t.Error("bob sees the outcome of ann's form")
	}
	_, err = once(t, f, "bob", "/a", id, now, &done)
	testkit.NoError(t, err)
	testkit.Equal(t, "done for each user", done, 2)
}

// TestAFormIsRefusedThatIsOld: what it shows may have changed, and the console remembers no longer whether it was done.
func TestAFormIsRefusedThatIsOld(t *testing.T) {
	f, done := forms.New(now), 0
	for name, c := range map[string]struct {
		id string
		at time.Time
	}{
		"old":                 {ids.NewRequestID(now).String(), now.Add(11 * time.Minute)},
		"of the future":       {ids.NewRequestID(now.Add(time.Hour)).String(), now},
		"from before a start": {ids.NewRequestID(now.Add(-time.Second)).String(), now},
		"without an id":       {"", now},
	} {
		if _, err := once(t, f, "ann", "/a", c.id, c.at, &done); err == nil {
			t.Errorf("a form %s is accepted", name)
		}
	}
	testkit.Equal(t, "done", done, 0)
}

// TestAFormWithAnOpenOutcomeCanBeSentAgain: with the same id, which the engine knows again.
func TestAFormWithAnOpenOutcomeCanBeSentAgain(t *testing.T) {
	f, id := forms.New(now), ids.NewRequestID(now).String()
	for i := range 3 {
		outcome, err := f.Once(t.Context(), "ann", "/a", id, "", now, func() forms.Outcome { return forms.Outcome{Text: fmt.Sprint(i), Open: i < 1} })
		testkit.NoError(t, err)
		testkit.Equal(t, "the outcome", outcome.Text, fmt.Sprint(min(i, 1)))
	}
}

// TestTheLastFormOfAPageIsKnown: also while it is under way. Those of other users and pages are not.
func TestTheLastFormOfAPageIsKnown(t *testing.T) {
	f, done := forms.New(now), 0
	last := func(user, path string) string {
		outcome, known := f.Last(user, path)
		return fmt.Sprint(outcome.Text, " ", known)
	}
	testkit.Equal(t, "before", last("ann", "/a"), " false")
	for range 2 {
		testkit.NoError(t, testkit.Err(once(t, f, "ann", "/a", ids.NewRequestID(now).String(), now, &done)))
	}
	testkit.NoError(t, testkit.Err(f.Once(t.Context(), "ann", "/b", ids.NewRequestID(now).String(), "", now, func() forms.Outcome {
		testkit.Equal(t, "while it is done", last("ann", "/b"), "It is under way. true")
		return forms.Outcome{}
	})))
	testkit.Equal(t, "of two", last("ann", "/a"), "done 2 true")
	testkit.Equal(t, "of another user", last("bob", "/a"), " false")
}

// TestFormsAreBounded: one user with many forms takes no memory of others.
func TestFormsAreBounded(t *testing.T) {
	f, done := forms.New(now), 0
	first, bobs := ids.NewRequestID(now).String(), ids.NewRequestID(now).String()
	for _, id := range []string{first, ids.NewRequestID(now).String()} {
		testkit.NoError(t, testkit.Err(once(t, f, "ann", "/a", id, now, &done)))
	}
	testkit.NoError(t, testkit.Err(once(t, f, "bob", "/a", bobs, now, &done)))
	for range 1000 {
		testkit.NoError(t, testkit.Err(once(t, f, "ann", "/a", ids.NewRequestID(now).String(), now, &done)))
	}
	if _, known := f.Outcome("ann", first); known {
		t.Error("the first of 1000 forms is remembered")
	}
	if _, known := f.Outcome("bob", bobs); !known {
		t.Error("the only form of bob is forgotten")
	}
}
