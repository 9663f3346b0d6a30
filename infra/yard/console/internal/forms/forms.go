// Package forms remembers the forms that users have sent.
//
// Owns: which form was sent, and its outcome, for ten minutes, so that a form that is sent twice does its work once. Never does: know what a form is for, or
// store anything on disk. On failure: after a restart of the console, forms from before it are refused, and have to be opened again.
package forms

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

const (
	// ageMax is how old a form may be when it is sent, since its page may be out of date.
	ageMax = 10 * time.Minute
	// perUserMax is how many forms of a user are remembered.
	perUserMax = 100
)

// Outcome is what became of a form.
type Outcome struct {
	// Text says what was done, or why nothing was. Code is that of the error; "" = none.
	Text string
	Code fault.Code
	// At is when that was.
	At time.Time
	// Path is the page that shows the effect. Further is the page of a form that does what is left; "" = nothing is left.
	Path, Further string
	// Open: it is not known whether it was done, so the same form may be sent again.
	Open bool
}

// Forms are those that were sent. It is safe for concurrent use.
type Forms struct {
	started time.Time

	mu sync.Mutex
	// sent are the forms of each user, oldest first.
	sent map[string][]*form
}

type form struct {
	id   ids.RequestID
	path string
	// inputs is a digest of what was sent.
	inputs [sha256.Size]byte
	// done is closed when outcome is there.
	done    chan struct{}
	outcome Outcome
}

// New knows no form.
func New(now time.Time) *Forms { return &Forms{started: now, sent: map[string][]*form{}} }

// Once does what a form of a user is for, unless that was done: then it returns the outcome, and waits for it if that is under way. Path is where the form was
// sent to, id is that of the form, inputs is all that it holds.
func (f *Forms) Once(ctx context.Context, user, path, id, inputs string, now time.Time, do func() Outcome) (Outcome, error) {
	one, underWay, err := f.enter(user, path, id, sha256.Sum256([]byte(inputs)), now)
	if err != nil {
		return Outcome{}, err
	}
	if underWay == nil {
		outcome := Outcome{Text: "the console failed", Code: fault.Internal, At: now, Open: true}
		defer func() {
			f.mu.Lock()
			one.outcome = outcome
			f.mu.Unlock()
			close(one.done)
		}()
		outcome = do()
		return outcome, nil
	}
	select {
	case <-underWay:
		f.mu.Lock()
		defer f.mu.Unlock()
		return one.outcome, nil
	case <-ctx.Done():
		return Outcome{}, fault.New(fault.Unavailable, "the form was sent twice, and is still under way")
	}
}

// enter returns the form, and what is closed when it was done; nil: it is to be done now.
func (f *Forms) enter(user, path, text string, inputs [sha256.Size]byte, now time.Time) (one *form, underWay <-chan struct{}, err error) {
	id, err := ids.ParseRequestID(text)
	if err != nil {
		return nil, nil, fault.At(fault.InvalidArgument, "/form", "the form has no id: open the page again")
	}
	if made := id.Time(); made.Before(f.started.Truncate(time.Millisecond)) || now.Sub(made) > ageMax || made.Sub(now) > ageMax {
		return nil, nil, fault.New(fault.FailedPrecondition, "the form is older than %s, or than the console: open the page again", ageMax)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.sent, func(_ string, all []*form) bool { return now.Sub(all[len(all)-1].id.Time()) > 2*ageMax })
	if one := f.find(user, id); one != nil && one.path != path {
		return nil, nil, fault.At(fault.InvalidArgument, "/form", "the form is of another page: open the page again")
	} else if one != nil && one.inputs != inputs {
		return nil, nil, fault.At(fault.InvalidArgument, "/form", "the form was sent before with other inputs: open the page again")
	} else if one != nil && !one.again() {
		return one, one.done, nil
	} else if one != nil {
		one.done = make(chan struct{})
		return one, nil, nil
	}
	one = &form{id: id, path: path, inputs: inputs, done: make(chan struct{})}
	all := append(f.sent[user], one)
	f.sent[user] = all[max(0, len(all)-perUserMax):]
	return one, nil, nil
}

// again reports whether a form may be sent again.
func (one *form) again() bool {
	select {
	case <-one.done:
		return one.outcome.Open
	default:
		return false
	}
}

func (f *Forms) find(user string, id ids.RequestID) *form {
	for _, one := range f.sent[user] {
		if one.id == id {
			return one
		}
	}
	return nil
}

// Last is what became of the form that a user sent last to a path, of those that are remembered; false: there is none.
func (f *Forms) Last(user, path string) (Outcome, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range slices.Backward(f.sent[user]) {
		if one.path != path {
			continue
		}
		select {
		case <-one.done:
			return one.outcome, true
		default:
			return Outcome{Text: "It is under way.", At: one.id.Time(), Open: true}, true
		}
	}
	return Outcome{}, false
}

// Outcome is what became of a form of a user; false: that is not known, or not yet.
func (f *Forms) Outcome(user, text string) (Outcome, bool) {
	id, err := ids.ParseRequestID(text)
	if err != nil {
		return Outcome{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.find(user, id)
	if one == nil {
		return Outcome{}, false
	}
	select {
	case <-one.done:
		return one.outcome, true
	default:
		return Outcome{}, false
	}
}
