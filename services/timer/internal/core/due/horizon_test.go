package due

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// farConfig has tasks near ten minutes before their time, and few of them.
func farConfig(nearMost int) Config {
	return Config{FiredKeepMS: 600_000, FiredMost: 1000, BucketMS: testMinute, HorizonMS: 10 * testMinute, NearMost: nearMost}
}

// farStore is a store with an owner that has far buckets.
type farStore struct {
	tb       testing.TB
	messages []Message
	table    *Table
	// forgets: the owner does not remember what it fired, as if that was long ago.
	forgets bool
	// dueMost is how many tasks may be near of buckets that are due, if it is more.
	dueMost int
}

func newFarStore(tb testing.TB, nearMost int, messages ...Message) *farStore {
	tb.Helper()
	s := &farStore{tb: tb, messages: messages}
	s.takeOver(Cursor{}, nearMost, 0)
	return s
}

func (s *farStore) takeOver(c Cursor, nearMost int, nowMS int64) {
	s.tb.Helper()
	cfg := farConfig(nearMost)
	cfg.DueMost = s.dueMost
	if s.forgets {
		cfg.FiredMost = 0
	}
	s.table = New(cfg)
	s.table.Resume(c, 1, nowMS)
	for _, m := range s.messages {
		s.load(m)
	}
	s.table.Loaded()
	s.table.check(s.tb)
}

func (s *farStore) append(m Message) {
	s.tb.Helper()
	s.messages = append(s.messages, m)
	s.load(m)
	s.table.check(s.tb)
}

func (s *farStore) load(m Message) {
	for _, r := range s.table.EarlyFar(&m) {
		s.bring(r.ID)
	}
	s.table.Load(m)
}

func (s *farStore) again(id ids.TaskID) (all []Reread) {
	for _, at := range s.table.Far().Places(id) {
		if task := s.messages[at.Seq-1].Tasks[at.Index]; task.ID == id {
			all = append(all, Reread{Place: at, Task: task})
		}
	}
	return all
}

func (s *farStore) bring(id ids.TaskID) { s.table.Bring(s.again(id)) }

// approach loads all that is to come near, and returns the buckets.
func (s *farStore) approach(nowMS int64) (all []int64) {
	s.tb.Helper()
	for {
		buckets, upTo := s.table.Approach(nowMS)
		if len(buckets) == 0 {
			return all
		}
		for _, m := range s.messages[:upTo] {
			if slices.Contains(buckets, m.Bucket) {
				s.table.LoadBucket(m)
			}
		}
		s.table.Loaded()
		s.table.check(s.tb)
		all = append(all, buckets...)
	}
}

// fireEarly has a task fire early.
func (s *farStore) fireEarly(atMS int64, n int) {
	s.tb.Helper()
	s.bring(testID(n))
	needed, _ := s.table.FireEarly([]Wanted{{ID: testID(n)}}, atMS)
	for _, m := range EarlyMessages(needed) {
		s.append(Message{Seq: uint64(len(s.messages) + 1), AtMS: atMS, Bucket: m.Bucket, Early: m.All, Domain: m.Domain, Tasklist: m.Tasklist})
	}
}

// waitsFar reports whether a task waits and is not near.
func (s *farStore) waitsFar(n int, domain string) bool {
	_, ok := s.table.Far().Waits(s.again(testID(n)), domain)
	return ok
}

// TestI7_FarTasksAreNotNear: they are counted and found by their places, and come near before their time, as long before as half of the horizon.
func TestI7_FarTasksAreNotNear(t *testing.T) {
	s := newFarStore(t, 100, message(1, 1000, 1), message(2, 60*testMinute+1, 2, 3), message(3, 61*testMinute, 4))
	testkit.Equal(t, "wait and near", [2]int{s.table.Len(), s.table.Near()}, [2]int{4, 1})
	testkit.Equal(t, "counted", s.table.Counts().Waiting("a", "x"), 4)
	if !s.waitsFar(3, "a") || s.waitsFar(3, "b") || s.waitsFar(1, "a") || s.waitsFar(9, "") {
		t.Error("far tasks are not found, or others are")
	}
	testkit.Equal(t, "fired", fire(s.table, 70*testMinute), []ids.TaskID{testID(1)}) // no further than what is near
	if got := s.approach(55*testMinute - 1); got != nil {
		t.Errorf("came near too soon: %v", got)
	}
	testkit.Equal(t, "come near", s.approach(55*testMinute), []int64{60, 61})
	testkit.Equal(t, "wait and near", [2]int{s.table.Len(), s.table.Near()}, [2]int{3, 3})
	testkit.Equal(t, "fired", fire(s.table, 60*testMinute+1), []ids.TaskID{testID(2), testID(3)})
	testkit.Equal(t, "at last", fire(s.table, 61*testMinute), []ids.TaskID{testID(4)})
	testkit.Equal(t, "places of a fired task", s.table.Far().Places(testID(4)), nil)
	s.takeOver(s.table.Cursor(), 100, 61*testMinute)
	testkit.Equal(t, "wait for the next owner", s.table.Len(), 0)
}

// TestI10_AFarTaskFiresEarlyOnce: alone, also for the next owner, and not again when its bucket comes near. A second copy does not either.
func TestI10_AFarTaskFiresEarlyOnce(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1, 2), message(2, 60*testMinute, 1))
	s.forgets = true
	s.takeOver(Cursor{}, 100, 0)
	s.fireEarly(5000, 1)
	testkit.Equal(t, "near", s.table.Near(), 1)
	before := s.table.Cursor()
	testkit.Equal(t, "fired", fire(s.table, 5000), []ids.TaskID{testID(1)})
	after := s.table.Cursor()
	for name, c := range map[string]Cursor{"not fired": before, "fired": after} {
		s.takeOver(c, 100, 6000)
		if fired := name == "fired"; fired != (fire(s.table, 6000) == nil) || s.waitsFar(1, "") {
			t.Errorf("%s: a far task is fired again, or never", name)
		}
		if s.fireEarly(7000, 1); fire(s.table, 7000) != nil {
			t.Errorf("%s: fired again for a command", name)
		}
		s.messages = s.messages[:3]
		s.approach(55 * testMinute)
		testkit.Equal(t, name+", when it is due", fire(s.table, 60*testMinute), []ids.TaskID{testID(2)})
	}
}

// TestTheHorizonGoesBack if more tasks are near than may be. After a downtime the oldest buckets fire first.
func TestTheHorizonGoesBack(t *testing.T) {
	var messages []Message
	for n := range 40 {
		messages = append(messages, message(uint64(n+1), int64(39-n)*testMinute+1, 2*n, 2*n+1))
	}
	s := newFarStore(t, 8, messages...)
	s.takeOver(Cursor{}, 8, 60*testMinute)
	most, fired := 0, 0
	for s.table.Len() > 0 {
		s.approach(60 * testMinute)
		most = max(most, s.table.Near())
		chunk, ok := s.table.NextChunk(60*testMinute, one)
		if !ok {
			t.Fatalf("%d of %d fired, and no further", fired, 80)
		}
		if want := int64(fired/2)*testMinute + 1; chunk.Messages[0].DueMS[0] != want {
			t.Fatalf("the task that is fired is due at %d, want %d", chunk.Messages[0].DueMS[0], want)
		}
		s.table.Commit(60*testMinute, 0)
		fired++
	}
	testkit.Equal(t, "fired", fired, 80)
	if most > 8 {
		t.Errorf("%d were near", most)
	}
}

// TestI10_ATaskIsFarAgainIfItsCommandDidNotComeThrough: memory stays bounded though early messages cannot be stored. One that is stored after all counts.
func TestI10_ATaskIsFarAgainIfItsCommandDidNotComeThrough(t *testing.T) {
	s := newFarStore(t, 8, message(1, 60*testMinute, upFrom(0, 50)...))
	var needed []Stay
	for n := range 50 {
		s.bring(testID(n))
		one, _ := s.table.FireEarly([]Wanted{{ID: testID(n)}}, 1000)
		needed = append(needed, one...)
	}
	if at, ok := s.table.Next(); ok {
		t.Errorf("the owner wakes at %d, and nothing fires then", at)
	}
	s.append(message(2, 60*testMinute, 90))
	testkit.Equal(t, "wait and near", [2]int{s.table.Len(), s.table.Near()}, [2]int{51, 0})
	testkit.Equal(t, "counted", s.table.Counts().Waiting("a", "x"), 51)
	for _, m := range EarlyMessages(needed[:1]) {
		s.append(Message{Seq: 3, AtMS: 2000, Bucket: m.Bucket, Early: m.All, Domain: m.Domain, Tasklist: m.Tasklist})
	}
	testkit.Equal(t, "fired", fire(s.table, 2000), []ids.TaskID{testID(0)})
	s.approach(60 * testMinute)
	testkit.Equal(t, "fired when due", len(fire(s.table, 60*testMinute)), 50)
}

// TestASecondCopyOfATaskThatCameNearAloneIsNotCounted.
func TestASecondCopyOfATaskThatCameNearAloneIsNotCounted(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1))
	s.bring(testID(1))
	s.append(message(2, 60*testMinute, 1))
	testkit.Equal(t, "wait", s.table.Len(), 1)
}

// TestI10_ACopyComesWhileItsBucketIsLoaded: the task fires as its first record, or the cursor would cover that one too soon. So it does if it fires early
// and the round under way, of a clock ahead, has the first record.
func TestI10_ACopyComesWhileItsBucketIsLoaded(t *testing.T) {
	for _, c := range []Cursor{{}, {Line: Line{Round: Mark{DueMS: 60 * testMinute, Seq: 3}, Last: Key{DueMS: 1000, Seq: 1}}}} {
		s := newFarStore(t, 100, message(1, 60*testMinute, 1), message(2, 60*testMinute, 2), message(3, 60*testMinute, 3))
		s.takeOver(c, 100, 0)
		buckets, _ := s.table.Approach(58 * testMinute)
		testkit.MustEqual(t, "come near", buckets, []int64{60})
		s.append(message(4, 60*testMinute, 1))
		if c != (Cursor{}) {
			s.append(Message{Seq: 5, AtMS: 58 * testMinute, Bucket: 60, Domain: "a", Tasklist: "x", Early: []Early{{ID: testID(1), Generation: 1, Place: far.Place{Seq: 1}, Bytes: 10}}})
		}
		for _, m := range s.messages[:3] {
			s.table.LoadBucket(m)
		}
		s.table.Loaded()
		s.table.check(t)
		testkit.Equal(t, "fired", fire(s.table, 61*testMinute), []ids.TaskID{testID(1), testID(2), testID(3)})
	}
}

// TestOfSeveralRecordsTheFirstOfTheLastGenerationWaits, in whichever order they are read.
func TestOfSeveralRecordsTheFirstOfTheLastGenerationWaits(t *testing.T) {
	messages := []Message{message(1, 60*testMinute, 1), message(2, 60*testMinute, 1), message(3, 60*testMinute, 1)}
	messages[1].Tasks[0].Parkings, messages[2].Tasks[0].Parkings = 2, 2
	s := newFarStore(t, 100, messages...)
	all := s.again(testID(1))
	for range 2 {
		slices.Reverse(all)
		got, ok := s.table.Far().Waits(all, "a")
		testkit.Equal(t, "place", got.Place, far.Place{Seq: 2})
		testkit.Equal(t, "waits", ok, true)
	}
}

// TestTasksThatTheStoreLostAreCountedOnce: they are reported when their bucket comes near, and wait no more.
func TestTasksThatTheStoreLostAreCountedOnce(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1, 2), message(2, 60*testMinute, 3))
	buckets, _ := s.table.Approach(59 * testMinute)
	testkit.MustEqual(t, "come near", buckets, []int64{60})
	s.table.LoadBucket(s.messages[1])
	testkit.Equal(t, "lost", s.table.Loaded(), 2)
	s.table.check(t)
	testkit.Equal(t, "wait", s.table.Len(), 1)
	testkit.Equal(t, "counted", s.table.Counts().Waiting("a", "x"), 1)
}

// TestI7_ManyDomainsHaveTasksInOneMinute: a task costs as much there as elsewhere.
func TestI7_ManyDomainsHaveTasksInOneMinute(t *testing.T) {
	const n = 100_000
	s := newFarStore(t, n)
	for i := range n {
		m := message(uint64(i+1), 60*testMinute, i)
		m.Tasks[0].Group.Domain = strconv.Itoa(i)
		s.messages = append(s.messages, m)
		s.load(m)
	}
	s.table.check(t)
	testkit.Equal(t, "counted", s.table.Counts().Waiting("77777", ""), 1)
	testkit.Equal(t, "come near", s.approach(59*testMinute), []int64{60})
	testkit.Equal(t, "near", s.table.Near(), n)
	testkit.Equal(t, "counted", s.table.Counts().Waiting("77777", ""), 1)
}

// TestAFullBucketComesNearAsAWhole.
func TestAFullBucketComesNearAsAWhole(t *testing.T) {
	s := newFarStore(t, 4, message(1, 60*testMinute, upFrom(0, 50)...), message(2, 61*testMinute, 90))
	testkit.Equal(t, "come near", s.approach(59*testMinute), []int64{60})
	testkit.Equal(t, "near", s.table.Near(), 50)
	testkit.Equal(t, "fired", len(fire(s.table, 60*testMinute)), 50)
	testkit.Equal(t, "then", s.approach(60*testMinute), []int64{61})
}

// TestAFullBucketIsReadOnce, though messages come and a few tasks are due before it: it would be read again for each of them.
func TestAFullBucketIsReadOnce(t *testing.T) {
	for _, sooner := range []int{0, 1} {
		s := newFarStore(t, 4, message(1, 60*testMinute, upFrom(0, 50)...), message(2, 56*testMinute, upFrom(60, sooner)...))
		s.approach(55 * testMinute)
		testkit.MustEqual(t, "near", s.table.Near(), 50+sooner)
		for n := range 3 {
			s.append(message(uint64(3+n), 90*testMinute, 70+n))
			testkit.Equal(t, "read again", s.approach(55*testMinute), nil)
			testkit.Equal(t, "near", s.table.Near(), 50+sooner)
		}
	}
}

// R23: a domain is apart, and its cursor is ahead of the clock. The others' tasks that are due until then are not near, and fire.
func TestR23_ADomainApartIsAheadOfWhatIsNear(t *testing.T) {
	s := newFarStore(t, 100, message(1, 30*testMinute, 1))
	var c Cursor
	c.Apart[0] = Apart{Domain: "b", Line: Line{Base: Mark{DueMS: 60 * testMinute, Seq: 1}}}
	s.takeOver(c, 100, 0)
	s.approach(30 * testMinute)
	testkit.Equal(t, "fired", fire(s.table, 30*testMinute), []ids.TaskID{testID(1)})
}

// TestI12_AVoidTaskOfAFarBucketIsVoid: when it is loaded the fences behind it are known too, and do not matter.
func TestI12_AVoidTaskOfAFarBucketIsVoid(t *testing.T) {
	s := newFarStore(t, 100, of(1, message(1, 60*testMinute, 1)), fenceAt(2, 2), of(1, message(3, 60*testMinute, 2)), of(2, message(4, 60*testMinute, 3)), fenceAt(5, 3))
	testkit.Equal(t, "wait", s.table.Len(), 2)
	s.approach(59 * testMinute)
	testkit.Equal(t, "fired", fire(s.table, 60*testMinute), []ids.TaskID{testID(1), testID(3)})
}

// TestABucketIsPurgedWhenItWasNear, and counts nothing any more.
func TestABucketIsPurgedWhenItWasNear(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1), message(2, 90*testMinute, 2))
	s.fireEarly(1000, 1)
	fire(s.table, 1000)
	if got := s.table.Purgeable(9, 3); got != nil {
		t.Errorf("a far bucket is purged: %v", got)
	}
	testkit.Equal(t, "far buckets of a", farBuckets(s.table, "a", "x"), []int64{90})
	s.approach(59 * testMinute)
	testkit.Equal(t, "purgeable", s.table.Purgeable(9, 3), []Purge{})
	s.append(message(4, 91*testMinute, 4))
	testkit.Equal(t, "purgeable", s.table.Purgeable(9, 4), []Purge{{Bucket: 60, UpTo: 3}})
}

// farBuckets are those in which tasks of a tasklist wait.
func farBuckets(table *Table, domain, tasklist string) (all []int64) {
	for from := int64(0); ; {
		number, found, more := table.Counts().FarBucket(domain, tasklist, from)
		switch {
		case !more:
			return all
		case found:
			all = append(all, number)
			from = number + 1
		default:
			from = number
		}
	}
}

// TestASearchForAFarBucketIsShort: it visits so many buckets that firing goes on, also if the next one is a year away. A place that no page has ended at, or a domain without tasks, costs nothing.
func TestASearchForAFarBucketIsShort(t *testing.T) {
	const year = 366 * 24 * 60
	s := newFarStore(t, 100, message(1, 60*testMinute, 1), message(2, year*testMinute, 2))
	for n := range 3 * farVisits {
		m := message(uint64(n+3), 61*testMinute, n+3)
		m.Tasks[0].Group.Domain, m.Tasks[0].Group.Tasklist = "flood", fmt.Sprint("list", n)
		s.table.Load(m)
	}
	testkit.Equal(t, "far buckets of a", farBuckets(s.table, "a", ""), []int64{60, year})
	testkit.Equal(t, "of a tasklist", farBuckets(s.table, "flood", "list7"), []int64{61})
	if at, found, more := s.table.Counts().FarBucket("a", "", 62); found || !more || at > 62+farVisits {
		t.Errorf("a search of empty buckets ends at %d: %v, %v", at, found, more)
	}
	for domain, from := range map[string]int64{"a": math.MaxInt64, "b": math.MinInt64} {
		if _, found, more := s.table.Counts().FarBucket(domain, "", from); found || more {
			t.Errorf("a far bucket of %s", domain)
		}
	}
	s.table.check(t)
}

// TestALostFarRecordWaitsNoMore.
func TestALostFarRecordWaitsNoMore(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1))
	m := Message{Seq: 2, Bucket: 60, Domain: "a", Tasklist: "x", Early: []Early{{ID: testID(1), Place: far.Place{Seq: 1}, Bytes: 10}}}
	s.table.Far().Lose(&m)
	s.table.check(t)
	if s.table.Far().Places(testID(1)) != nil || s.table.Far().Has(testID(1), far.Place{Seq: 1}) {
		t.Error("it waits")
	}
	testkit.Equal(t, "wait", s.table.Len(), 0)
}

// TestI10_ATaskFiresEarlyWhileItsBucketIsLoaded: no round begins before the bucket is near, since it would cover the early key. One of the tasks was read by then.
func TestI10_ATaskFiresEarlyWhileItsBucketIsLoaded(t *testing.T) {
	const now = 59 * testMinute
	s := newFarStore(t, 100, message(1, 60*testMinute, 1), message(2, 60*testMinute, 2), message(3, 5*testMinute, 3))
	buckets, _ := s.table.Approach(now)
	testkit.MustEqual(t, "come near", buckets, []int64{60})
	s.table.LoadBucket(s.messages[0])
	early := Message{Seq: 4, AtMS: now, Bucket: 60, Domain: "a", Tasklist: "x"}
	for n := range 2 {
		early.Early = append(early.Early, Early{ID: testID(n + 1), Generation: 1, Place: far.Place{Seq: uint64(n + 1)}, Bytes: 10})
	}
	s.append(early)
	s.append(message(5, now, 5))
	if got := fire(s.table, now); got != nil {
		t.Errorf("fired %v", got)
	}
	if _, ok := s.table.Next(); ok {
		t.Error("something is to be fired")
	}
	if _, status := s.table.Find(testID(1), ""); status != Loading {
		t.Errorf("status %d of a task that is being loaded", status)
	}
	s.table.LoadBucket(s.messages[1])
	s.table.Loaded()
	s.table.check(t)
	testkit.Equal(t, "fired", fire(s.table, now), []ids.TaskID{testID(3), testID(5), testID(1), testID(2)})
}

// R23: a cursor is rewound while a bucket is loaded, with a task in it that fired early.
func TestR23_ACursorIsRewoundWhileABucketIsLoaded(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1), message(2, 5*testMinute, 2))
	s.fireEarly(1000, 1)
	fire(s.table, 58*testMinute)
	buckets, _ := s.table.Approach(57 * testMinute)
	testkit.MustEqual(t, "come near", buckets, []int64{60})
	s.table.recent.most = 0
	s.table.recent.expire(math.MaxInt64)
	for _, m := range []Message{s.messages[0], s.messages[2]} {
		s.table.LoadBucket(m)
	}
	if got := fire(s.table, 3*testMinute); got != nil { // the clock is set back
		t.Errorf("fired %v", got)
	}
	s.table.Loaded()
	testkit.Equal(t, "fired", len(fire(s.table, 60*testMinute)), 0)
}

// TestABucketComesNearAtTheNextApproach, and not before.
func TestABucketComesNearAtTheNextApproach(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1), message(2, 90*testMinute, 2))
	for _, want := range []int64{60, 90} {
		next := s.table.Far().ApproachMS()
		testkit.MustEqual(t, "before", s.approach(next-1), nil)
		testkit.MustEqual(t, "then", s.approach(next), []int64{want})
	}
	if next := s.table.Far().ApproachMS(); next < 1_000_000*testMinute {
		t.Errorf("nothing is far, and yet it approaches at %d", next)
	}
}
