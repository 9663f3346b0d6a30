package distribution

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const ms = time.Millisecond

// answer has an append to p take so long, from now on. It returns when it was answered.
func answer(b *Balancer, p int, now time.Time, took time.Duration) time.Time {
	b.Began(p, now)
	b.Answered(p, now.Add(took))
	return now.Add(took)
}

// answers has several take so long, one after the other.
func answers(b *Balancer, p, n int, now time.Time, took time.Duration) time.Time {
	for range n {
		now = answer(b, p, now, took)
	}
	return now
}

// oneSlow is a balancer that knows all partitions, of which 0 gets probes only.
func oneSlow(partitions int) (b *Balancer, now time.Time) {
	b, now = New(partitions), t0
	for p := range partitions {
		now = answer(b, p, now, 2*ms)
	}
	return b, answers(b, 0, ProbesAfter, now, 50*ms)
}

func TestSharesFollowTheAnswers(t *testing.T) {
	b := New(3)
	now := answers(b, 1, 2, t0, 10*ms)
	now = answers(b, 2, 2, now, 10*ms)
	is := func(when string, want Share) {
		t.Helper()
		testkit.Equal(t, when, b.Share(0), want)
	}
	now = answers(b, 0, 10, now, SlowTimes*10*ms)
	is("as slow as may be", Full)
	now = answer(b, 0, now, SlowTimes*10*ms+1)
	is("slow once", Full)
	now = answer(b, 0, now, 10*ms)
	now = answer(b, 0, now, 50*ms)
	is("slow again, and quick between", Full)
	now = answer(b, 0, now, 50*ms)
	is("slow twice in a row", Less)
	now = answers(b, 0, FullAfter-1, now, 10*ms)
	is("not quick for long enough", Less)
	now = answer(b, 0, now, 50*ms)
	now = answers(b, 0, FullAfter, now, 10*ms)
	is("quick again", Full)
	now = answers(b, 0, ProbesAfter-1, now, 50*ms)
	is("slow for some time", Less)
	now = answer(b, 0, now, 50*ms)
	is("slow for long", Probes)
	now = answer(b, 0, now, 50*ms)
	is("a slow probe", Probes)
	now = answer(b, 0, now, 10*ms)
	is("a quick probe", Less)
	answers(b, 0, FullAfter, now, 10*ms)
	is("quick after the probe", Full)
}

// An append that is not answered yet counts for as long as it has taken: a server that hangs is noticed before a timeout.
func TestSilenceIsNoticedBeforeTheAnswer(t *testing.T) {
	b := New(2)
	now := answer(b, 0, answer(b, 1, t0, ms), ms)
	b.Began(0, now)
	testkit.Equal(t, "within what may be", len(b.Changes(now.Add(SlowMin))), 0)
	testkit.Equal(t, "longer", b.Changes(now.Add(SlowMin+1)), []Change{{0, Full, Less, SlowMin + 1, ms}})
	b.Began(0, now.Add(SlowMin+2)) // one more does not hide it
	testkit.Equal(t, "still", len(b.Changes(now.Add(SilentAfter))), 0)
	testkit.Equal(t, "much longer", b.Changes(now.Add(SilentAfter+1)), []Change{{0, Less, Probes, SilentAfter + 1, ms}})
	testkit.Equal(t, "once", len(b.Changes(now.Add(time.Second))), 0)
	b.Abandoned(0)
	b.Abandoned(0)
	b.Began(1, now.Add(time.Second))
	testkit.Equal(t, "the last one with its full share", len(b.Changes(now.Add(time.Minute))), 0)
}

// The answers of appends that are under way together are one after the other.
func TestWhatIsAheadOfAnAppendIsNotItsOwnTime(t *testing.T) {
	b := New(2)
	now := answer(b, 0, answer(b, 1, t0, ms), ms)
	for range 8 {
		b.Began(0, now)
	}
	for range 8 {
		now = now.Add(SlowMin)
		b.Answered(0, now)
	}
	testkit.Equal(t, "the share", b.Share(0), Full)
}

// What is expected: nothing is known, then the own past, then what the quicker third of others takes, for a while.
func TestWhatIsExpected(t *testing.T) {
	slow := func(b *Balancer, now time.Time, took time.Duration) bool {
		answers(b, 0, LessAfter, now, took)
		return b.Share(0) == Less
	}
	if slow(New(2), t0, SlowTimes*ExpectedFirst) || !slow(New(2), t0, SlowTimes*ExpectedFirst+1) {
		t.Error("nothing was known")
	}
	own := func() (*Balancer, time.Time) {
		b := New(4)
		return b, answer(b, 0, t0, 10*ms)
	}
	if b, now := own(); slow(b, now, 40*ms) {
		t.Error("as before, about")
	}
	if b, now := own(); !slow(b, now, 50*ms) {
		t.Error("slower than before")
	}
	others := func() (*Balancer, time.Time) {
		b, now := own()
		for p, took := range []time.Duration{90 * ms, 30 * ms, 80 * ms} {
			now = answer(b, 1+p, now, took)
		}
		return b, now
	}
	if b, now := others(); slow(b, now, 120*ms) {
		t.Error("the others are slow too")
	}
	if b, now := others(); !slow(b, now, 121*ms) {
		t.Error("slower than the others")
	}
	if b, now := others(); !slow(b, now.Add(KnownFor), 50*ms) {
		t.Error("slower than before, and what is known of the others is old")
	}
}

func TestAPartitionThatGetsLess(t *testing.T) {
	b := New(2)
	now := answers(b, 0, LessAfter, answer(b, 1, t0, ms), 250*ms)
	testkit.MustEqual(t, "the share", b.Share(0), Less)
	deal := func(n int) (toSlow int) {
		for range n {
			if pick(t, b, now, 1, 0) == 0 {
				toSlow++
			}
		}
		return toSlow
	}
	testkit.Equal(t, "of ten rounds", deal(10*LessEvery), 10)
	b.Began(0, now)
	testkit.Equal(t, "while one is under way", deal(10*LessEvery), 0)
}

func TestProbesOfASlowPartition(t *testing.T) {
	b, now := oneSlow(2)
	testkit.MustEqual(t, "the share", b.Share(0), Probes)
	b.Report(1, 1_000_000, 0, now) // the other one is full of work
	for wait := ProbeMin; ; wait = min(2*wait, ProbeMax) {
		testkit.MustEqual(t, "before its time", pick(t, b, now.Add(wait-1), 1, 0), 1)
		now = now.Add(wait)
		testkit.MustEqual(t, "a probe", pick(t, b, now, 1, 0), 0)
		testkit.MustEqual(t, "a second one", pick(t, b, now, 1, 0), 1)
		if wait == ProbeMax {
			break
		}
	}
	b.Began(0, now)
	testkit.Equal(t, "while one is under way", pick(t, b, now.Add(time.Hour), 1, 0), 1)
}

// A request that may go to one partition only goes there, however slow it is.
func TestWhatIsFixedStaysFixed(t *testing.T) {
	b, now := oneSlow(2)
	if !b.Take(0, now, 1) || !b.Healthy(0) {
		t.Error("refused")
	}
}

// Slow partitions get everything if the others fail, or are full.
func TestSlowPartitionsServeWhereNoOtherCan(t *testing.T) {
	b, now := oneSlow(2)
	b.ReportFull(1, true)
	testkit.Equal(t, "the other one is full", pick(t, b, now, 1, 0), 0)
	b.ReportFull(1, false)
	b.Failed(1, 0, now)
	testkit.Equal(t, "the other one has failed", pick(t, b, now, 1, 0), 0)
	testkit.Equal(t, "again", pick(t, b, now, 1, 1), 0)
}
