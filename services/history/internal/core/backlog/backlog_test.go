package backlog

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var mail, bulk = Tasklist{"shop", "mail"}, Tasklist{"shop", "bulk"}

func levels(own, shared uint64) func(string) uint64 {
	return func(domain string) uint64 {
		if domain == "" {
			return shared
		}
		return own
	}
}

func TestWhatIsReadIsForgotten(t *testing.T) {
	l := NewLane(NewCaps(map[Tasklist]int64{mail: 10}), 5)
	l.Add(5, mail, false, 100) // read already
	l.Add(6, mail, false, 3)
	l.Add(6, bulk, false, 7) // has no cap
	l.Add(7, mail, true, 2)
	l.Add(7, mail, true, 2)
	l.Counted(9)
	l.Add(9, mail, false, 1) // counted before
	if got := l.Tasks(mail); got != 7 || l.Tasks(bulk) != 0 || l.To() != 9 || l.Next() != 10 {
		t.Errorf("%d, %d, up to %d", got, l.Tasks(bulk), l.To())
	}
	l.Pass(levels(5, 7)) // the domain lags
	if got := l.Tasks(mail); got != 3 {
		t.Errorf("%d, with the shared ones read", got)
	}
	l.Pass(levels(6, 7))
	if got := l.Tasks(mail); got != 0 || len(l.lists) != 0 {
		t.Errorf("%d, with all read", got)
	}
}

func TestCapsCover(t *testing.T) {
	if NewCaps(nil) != nil {
		t.Error("none are some")
	}
	one, both := NewCaps(map[Tasklist]int64{mail: 1}), NewCaps(map[Tasklist]int64{mail: 2, bulk: 1, {"bank", "x"}: 1})
	if len(both.Domains) != 2 || both.Domains[0] != "bank" {
		t.Errorf("domains %v", both.Domains)
	}
	if l := NewLane(both, 0); !l.Covers(one) || !l.Covers(both) {
		t.Error("fewer are not covered")
	}
	if NewLane(one, 0).Covers(both) {
		t.Error("more are covered")
	}
}

// Against a model that remembers each message: exact while there are few, never more than is unread, and bounded.
func TestAgainstAModel(t *testing.T) {
	rng := testkit.Seed(t)
	type message struct {
		seq    uint64
		shared bool
		tasks  int64
	}
	for run := range 6 {
		var model []message
		l, own, shared, seq := NewLane(NewCaps(map[Tasklist]int64{mail: 1}), 0), uint64(0), uint64(0), uint64(0)
		for range 200 {
			for range rng.IntN(100) {
				seq += 1 + rng.Uint64N(3)
				m := message{seq, rng.IntN(2) == 0, 1 + rng.Int64N(1000)}
				model = append(model, m)
				l.Add(m.seq, mail, m.shared, m.tasks)
			}
			l.Counted(seq)
			if run%4 > 0 || rng.IntN(100) == 0 { // else it grows long
				own += rng.Uint64N(seq-own+1) / 20
			}
			shared += rng.Uint64N(seq-shared+1) / 20
			l.Pass(levels(own, shared))
			want := int64(0)
			for _, m := range model {
				if m.shared && m.seq > shared || !m.shared && m.seq > own {
					want += m.tasks
				}
			}
			for _, q := range l.lists {
				if len(q.spans) > spansMax {
					t.Fatalf("%d spans", len(q.spans))
				}
			}
			missing := int64(0)
			if run%4 == 0 {
				missing = 16_000 // of the span that is read in part, of a dozen messages at most
			}
			if got := l.Tasks(mail); got > want || got < want-missing {
				t.Fatalf("%d tasks are counted, %d are unread", got, want)
			}
		}
	}
}
