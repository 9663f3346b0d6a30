package quota

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func newBook() *Book { return New(rand.New(rand.NewPCG(1, 2))) }

func TestARequestWaitsWhileASecondsWorthIsAhead(t *testing.T) {
	b, may := newBook(), Use{Tasks: 100}
	for _, c := range []struct {
		at    time.Duration
		tasks int64
		wait  time.Duration
	}{
		{0, 60, 0},
		{0, 60, 0}, // 120 ahead
		{0, 1, 200 * time.Millisecond},
		{100 * time.Millisecond, 1, 100 * time.Millisecond},
		{201 * time.Millisecond, 1000, 0}, // a large one does not wait for a rest; it is paid for afterwards
		{time.Second, 1, 9199 * time.Millisecond},
		{11 * time.Second, 1, 0},
		{12 * time.Second, 100_000, 0},
		{12 * time.Second, 1, waitMax}, // the quota may be raised meanwhile
	} {
		got := b.Take("shop", may, Use{Tasks: c.tasks}, c.at).Round(time.Millisecond)
		if got != c.wait && got != c.wait+time.Millisecond && got != c.wait-time.Millisecond {
			t.Errorf("%d tasks at %v wait %v, want %v", c.tasks, c.at, got, c.wait)
		}
	}
	testkit.Equal(t, "of another domain", b.Take("bank", may, Use{Tasks: 1}, 0), 0)
	testkit.Equal(t, "without a quota", b.Take("shop", Use{}, Use{Tasks: 1000}, 11*time.Second), 0)
	if b.Take("shop", Use{Bytes: 1000}, Use{Bytes: 5000}, 12*time.Second) > 0 || b.Take("shop", Use{Bytes: 1000}, Use{Bytes: 1}, 12*time.Second) == 0 {
		t.Error("bytes are not bounded")
	}
}

// Clients that come when they are asked to come seldom in vain, and use up the quota, however many they are.
func TestRefusedClientsComeOneAfterTheOther(t *testing.T) {
	for _, clients := range []int{2, 100, 1000} {
		for _, rate := range []int64{100, 1000} {
			b, may, random := newBook(), Use{Tasks: rate}, rand.New(rand.NewPCG(1, 1))
			next := make([]time.Duration, clients)
			taken, asked, seconds := int64(0), int64(0), int64(20)
			for now := time.Duration(0); now < time.Duration(seconds)*time.Second; now += time.Millisecond {
				for i := range next {
					if now < next[i] {
						continue
					}
					asked++
					wait := b.Take("shop", may, Use{Tasks: 1}, now)
					if wait == 0 {
						taken++
						continue
					}
					if wait < waitMin || wait > waitMax || wait%time.Millisecond != 0 {
						t.Fatalf("%d clients wait for %v", clients, wait)
					}
					next[i] = now + wait + time.Duration(random.Int64N(int64(wait/2))) // as the SDK does
				}
			}
			if asked > 3*taken || taken < rate*seconds {
				t.Errorf("%d clients at %d/s: %d of %d requests are taken", clients, rate, taken, asked)
			}
		}
	}
}

// A domain that runs at its quota waits for no longer after the quota was lowered, and for less after it was raised. Its debt goes with its quota.
func TestAChangedQuotaLengthensNoWait(t *testing.T) {
	for what, of := range map[string]func(int64) Use{
		"tasks": func(n int64) Use { return Use{Tasks: n} },
		"bytes": func(n int64) Use { return Use{Bytes: n} },
	} {
		b, high, low := newBook(), of(1_000_000), of(10)
		if b.Take("shop", high, of(3_000_000), 0) != 0 {
			t.Fatal("not taken")
		}
		before := b.Take("shop", high, of(1), 0)
		if after := b.Take("shop", low, of(1), 0); after > before+100*time.Millisecond {
			t.Errorf("%s: at the lower quota for %v, before for %v", what, after, before)
		}
		if wait := b.Take("shop", high, of(1), 0); wait != 0 {
			t.Errorf("%s: at the raised quota for %v", what, wait)
		}
		b.Take("shop", low, of(1), 0)
		b.Take("shop", Use{}, of(1), 0)
		if wait := b.Take("shop", low, of(1), 0); wait != 0 {
			t.Errorf("%s: at the quota that was set again for %v", what, wait)
		}
		b.Take("bank", low, of(100), 0)
		b.Keep(func(domain string) bool { return domain == "bank" })
		if len(b.meters) != 1 || b.meters["bank"] == nil {
			t.Errorf("%s: %v are known", what, b.meters)
		}
	}
}

// What is returned is not charged, here and at a frontend that has heard of it. No rest is left, and no credit.
func TestWhatIsReturnedIsNotCharged(t *testing.T) {
	may := Use{Tasks: 10, Bytes: 1000}
	a, b := newBook(), newBook()
	report := func(now time.Duration) { b.Heard("shop", may, a.Unsaid(now)["shop"], now) }
	if a.Take("shop", may, Use{Tasks: 20, Bytes: 2000}, 0) != 0 {
		t.Fatal("not taken")
	}
	report(0)
	a.Return("shop", Use{Tasks: 15, Bytes: 1500}, 100*time.Millisecond)
	report(100 * time.Millisecond)
	for _, book := range []*Book{a, b} {
		testkit.Equal(t, "was submitted", book.Last("shop", time.Second), Use{Tasks: 5, Bytes: 500})
		if book.Take("shop", may, Use{Tasks: 10, Bytes: 1000}, time.Second) != 0 {
			t.Error("what was returned is charged")
		}
	}
	a.Return("shop", Use{Tasks: 100, Bytes: 10_000}, 2*time.Second) // of an earlier second
	testkit.Equal(t, "was submitted", a.Last("shop", 3*time.Second), Use{})
	if a.Take("shop", may, Use{Tasks: 10}, 3*time.Second) != 0 || a.Take("shop", may, Use{Tasks: 1}, 3*time.Second) == 0 {
		t.Error("there is debt, or credit")
	}
	a.Return("bank", Use{Tasks: 1}, 0)
	testkit.Equal(t, "known", len(a.meters), 1)
}

// The use is that of the last whole second, also after one without any.
func TestTheLastSecondMayHaveNone(t *testing.T) {
	b := newBook()
	b.Take("shop", Use{Tasks: 10}, Use{Tasks: 3}, 0)
	testkit.Equal(t, "in the first second", b.Last("shop", time.Second), Use{Tasks: 3})
	testkit.Equal(t, "in the second one", b.Last("shop", 2*time.Second), Use{})
	b.Take("shop", Use{Tasks: 10}, Use{Tasks: 4}, 3*time.Second)
	testkit.Equal(t, "after a gap", b.Last("shop", 5*time.Second), Use{})
}

// However the requests are spread, all frontends together give the quota, and it is used up; a domain is forgotten only without debt.
func TestFrontendsShareAQuota(t *testing.T) {
	for _, frontends := range []int{1, 2, 5} {
		random, may := rand.New(rand.NewPCG(uint64(frontends), 1)), Use{Tasks: 1000, Bytes: 1 << 40}
		books := make([]*Book, frontends)
		for i := range books {
			books[i] = newBook()
		}
		let, seconds := int64(0), int64(20)
		for now := time.Duration(0); now < time.Duration(seconds)*time.Second; now += time.Millisecond {
			for range 3 { // three times what may be
				u := Use{Tasks: 1 + random.Int64N(3), Bytes: 10}
				if books[random.IntN(frontends)].Take("shop", may, u, now) == 0 {
					let += u.Tasks
				}
			}
			if now%(100*time.Millisecond) == 0 {
				for i, b := range books {
					for domain, u := range b.Unsaid(now) {
						for k, other := range books {
							if k != i {
								other.Heard(domain, may, u, now)
							}
						}
					}
				}
			}
		}
		// A second's worth at the start, and what comes between two reports.
		if least, most := may.Tasks*seconds, may.Tasks*(seconds+1)*105/100; let < least || let > most {
			t.Errorf("%d frontends let in %d in %d s, want %d to %d", frontends, let, seconds, least, most)
		}
		last := books[0].Last("shop", time.Duration(seconds)*time.Second)
		if last.Tasks < may.Tasks*9/10 || last.Tasks > may.Tasks*11/10 {
			t.Errorf("the last second had %d", last.Tasks)
		}
		books[0].Unsaid(time.Duration(seconds)*time.Second + 300*time.Millisecond)
		testkit.Equal(t, "known with debt", len(books[0].meters), 1)
		books[0].Unsaid(time.Duration(seconds+5) * time.Second)
		testkit.Equal(t, "known after a rest", len(books[0].meters), 0)
	}
}

func TestPollsOfAllFrontendsCount(t *testing.T) {
	p := NewPolls()
	p.Heard(1, map[string]int{"shop": 2}, 0)
	p.Heard(2, map[string]int{"shop": 1, "bank": 7}, time.Second)
	if !p.Open("shop", 4, time.Second) || p.Open("shop", 4, time.Second) || !p.Open("bank", 0, time.Second) {
		t.Errorf("%d of shop", p.Count("shop", time.Second))
	}
	if !p.Open("shop", 4, 2*time.Second) || p.Count("shop", 2*time.Second) != 3 { // the first frontend has been silent for too long
		t.Errorf("%d of shop", p.Count("shop", 2*time.Second))
	}
	if own := p.Own(); own["shop"] != 2 || own["bank"] != 1 { // also those that are not bounded: they may be a moment later
		t.Errorf("%v are open here", own)
	}
	p.Close("shop")
	p.Close("shop")
	if own := p.Own(); len(own) != 1 {
		t.Errorf("%v are open here", own)
	}
	p.Close("bank")
	p.Heard(2, nil, 3*time.Second)
	testkit.Equal(t, "open", p.Count("shop", 3*time.Second), 0)
	p.Heard(3, nil, 5*time.Second)
	testkit.Equal(t, "frontends are known", len(p.heard), 1) // the others are gone
}
