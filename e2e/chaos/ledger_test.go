package chaos_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// fate is what the submitter of a task was answered.
type fate string

const (
	accepted fate = "accepted"
	refused  fate = "refused" // it was certainly not accepted
	unsure   fate = "unsure"  // no one knows
)

// order is one task as its submitter knows it.
type order struct {
	key     string // unique; also the payload
	kind    kind
	delayed bool
	fate    fate
	id      string // of an accepted one
	at      time.Time
}

// attempt is one run of a handler.
type attempt struct {
	key, id string
	kind    kind
	// result is unique among all runs.
	result       string
	began, ended time.Time // ended is zero where the handler never returned
	leaseEnd     time.Time // without heartbeats
	succeeded    bool
	confirmed    bool // the engine's verdict of its completion was OK
}

// ledger is all that the outside of the system has seen. It is safe for
// concurrent use.
type ledger struct {
	mu       sync.Mutex
	orders   map[string]*order // by key
	attempts []*attempt
	done     map[string]kind // keys with a handler that succeeded, or was to fail
}

func newLedger() *ledger { return &ledger{orders: map[string]*order{}, done: map[string]kind{}} }

// submitted notes what became of a request.
func (l *ledger) submitted(orders []*order, ids []string, err error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range orders {
		o.at = now
		switch {
		case i < len(ids):
			o.fate, o.id = accepted, ids[i]
		case fault.CodeOf(err) == fault.Unknown:
			o.fate = unsure
		default:
			o.fate = refused
		}
		l.orders[o.key] = o
	}
}

// begin notes that a handler runs.
func (l *ledger) begin(key string, k kind, id string, leaseEnd time.Time) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &attempt{
		key: key, kind: k, id: id, began: time.Now(), leaseEnd: leaseEnd,
		result: fmt.Sprintf("%s/%d", key, len(l.attempts)),
	}
	l.attempts = append(l.attempts, a)
	return a
}

// end notes that it returned.
func (l *ledger) end(a *attempt, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.ended, a.succeeded = time.Now(), err == nil
	if a.succeeded || a.kind == doomed {
		l.done[a.key] = a.kind
	}
}

// confirm notes the engine's verdict of a completion.
func (l *ledger) confirm(a *attempt, code string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.confirmed = code == "OK"
}

// open lists the accepted orders of before an instant that no handler is done
// with, apart from delayed ones.
func (l *ledger) open(before time.Time) []*order {
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []*order
	for _, o := range l.orders {
		if o.fate == accepted && !o.delayed && o.at.Before(before) && l.done[o.key] == "" {
			open = append(open, o)
		}
	}
	return open
}

// doneCount is how many orders of some kinds a handler is done with.
func (l *ledger) doneCount(of ...kind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, k := range l.done {
		if slices.Contains(of, k) {
			n++
		}
	}
	return n
}

func (l *ledger) count(f fate) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, o := range l.orders {
		if o.fate == f {
			n++
		}
	}
	return n
}
