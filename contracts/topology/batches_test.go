package topology

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// match tells whether a filter of NATS takes a subject: "*" is one token, ">" at the end is one or more.
func match(filter, subject string) bool {
	want, got := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">":
			return i == len(want)-1 && len(got) > i
		case i >= len(got) || token != "*" && token != got[i]:
			return false
		}
	}
	return len(want) == len(got)
}

// Subjects of batches are in streams that outlive a version: they stay as they are spelled.
func TestSubjectsOfBatchesStayAsTheyAre(t *testing.T) {
	const token = "f8b7cff9eef28032f6736801a0cccbc0"
	for got, want := range map[string]string{
		BatchHome(3, "shop", "import"):                      "yard.history.3.batch.home.shop." + token,
		BatchHomesOf(3, "shop"):                             "yard.history.3.batch.home.shop.*",
		BatchHomeAny(3):                                     "yard.history.3.batch.home.>",
		BatchClosed(3, "shop", "import", 1_700_000_000_000): "yard.history.3.batch.closed.shop." + token + ".1700000000000",
		BatchAny(3):                                         "yard.history.3.batch.>",
		SubmitBatch(3, 4, "shop", "import"):                 "yard.history.3.submit.p4.shop.+" + token,
		HintBatch(3):                                        "yard.hint.batch.3",
		HintBatchAny:                                        "yard.hint.batch.*",
	} {
		if got != want {
			t.Errorf("%s is spelled %s", want, got)
		}
	}
}

// Any text may be a batch's id, and none of it reaches a subject: a dot or a wildcard there would be another subject.
func TestTheIDOfABatchIsNotInItsSubject(t *testing.T) {
	token := regexp.MustCompile(`^[0-9a-f]{32}$`)
	for _, id := range []string{"import", "a.b", "*", ">", "a b", "a\r\nPUB x 0", "", "\x00", strings.Repeat("ü", 64)} {
		home := BatchHome(0, "shop", id)
		if rest, ok := strings.CutPrefix(home, "yard.history.0.batch.home.shop."); !ok || !token.MatchString(rest) {
			t.Errorf("%q is at %q", id, home)
		}
		closed := BatchClosed(0, "shop", id, 7)
		if rest, ok := strings.CutSuffix(closed, ".7"); !ok || !token.MatchString(rest[strings.LastIndexByte(rest, '.')+1:]) {
			t.Errorf("%q is closed at %q", id, closed)
		}
	}
}

// Two batches never share a subject, whatever their domains and ids are: not even where one's domain and id, joined, are another's.
func TestNoTwoBatchesShareASubject(t *testing.T) {
	type batch struct{ domain, id string }
	seen := map[string]batch{}
	for _, b := range []batch{
		{"shop", "import"},
		{"bank", "import"},
		{"shop", "export"},
		{"shop", "Import"},
		{"shop", "import "},
		{"shop", "import.1"},
		{"shop", ""},
		{"ab", "c"},
		{"a", "bc"},
		{"abc", ""},
		{"a", "b\x00c"},
		{"a", "\x00bc"},
		{"shop", "é"},
		{"shop", "e\u0301"},
	} {
		subjects := map[string]bool{}
		for p := range 2 {
			for _, made := range []int64{1, 12, 1_700_000_000_000} {
				subjects[BatchClosed(p, b.domain, b.id, made)] = true
			}
			subjects[BatchHome(p, b.domain, b.id)] = true
		}
		if len(subjects) != 2*(1+3) {
			t.Errorf("%q has %d subjects: two of its partitions, or of the times at which it was made, share one", b, len(subjects))
		}
		for subject := range subjects {
			if other, taken := seen[subject]; taken {
				t.Errorf("%q and %q share %s", b, other, subject)
			}
			seen[subject] = b
		}
	}
	// The token itself differs between domains, since what reads it may not look at the domain before it.
	if batchToken("shop", "import") == batchToken("bank", "import") || batchToken("a", "bc") == batchToken("ab", "c") {
		t.Error("batches of two domains have one token")
	}
}

// Each filter takes what it says, and nothing of another kind, domain or partition.
func TestFiltersOfBatchesTakeTheirOwn(t *testing.T) {
	const made = 1_700_000_000_000
	home, members := BatchHome(3, "shop", "a.b"), BatchClosed(3, "shop", "a.b", made)
	elsewhere := []string{
		BatchHome(4, "shop", "a.b"), BatchClosed(4, "shop", "a.b", made), BatchHome(30, "shop", "a.b"),
		Event(3), Fired(3), UniqueKey(3, "shop", "a.b"), SubmitShared(3, 1), ArchiveOf(3, "shop"), ArchivePage(3, "shop", 17), ArchiveIndexed(3),
	}
	all := append([]string{home, members, BatchHome(3, "bank", "a.b"), HintBatch(3), HintBatch(4), SubmitBatch(3, 1, "shop", "a.b"), SubmitBatch(3, ids.LaneKeyed, "shop", "a.b")}, elsewhere...)
	for filter, want := range map[string][]string{
		BatchHomesOf(3, "shop"):    {home},
		BatchHomesOf(3, "bank"):    {BatchHome(3, "bank", "a.b")},
		BatchHomesOf(3, "sho"):     nil,
		BatchHomeAny(3):            {home, BatchHome(3, "bank", "a.b")},
		BatchAny(3):                {home, members, BatchHome(3, "bank", "a.b")},
		SubmitDomain(3, 1, "shop"): {SubmitBatch(3, 1, "shop", "a.b")},
		SubmitLane(3, 1):           {SubmitBatch(3, 1, "shop", "a.b"), SubmitShared(3, 1)},
		HintBatchAny:               {HintBatch(3), HintBatch(4)},
	} {
		takes := map[string]bool{}
		for _, subject := range want {
			takes[subject] = true
		}
		for _, subject := range all {
			if match(filter, subject) != takes[subject] {
				t.Errorf("%s takes %s: %v", filter, subject, !takes[subject])
			}
		}
	}
}

// What is stored of batches is in the streams of its partition, and is taken for nothing else there.
func TestBatchesAreInTheStreamsOfTheirPartition(t *testing.T) {
	for _, subject := range []string{BatchHome(3, "shop", "a"), BatchClosed(3, "shop", "a", 1)} {
		if !match(HistoryAny(3), subject) || match(HistoryAny(2), subject) {
			t.Errorf("%s is not in the log of partition 3 alone", subject)
		}
		if _, ok := LaneOf(3, subject); ok || IsSubmit(3, subject) || IsUniqueKey(3, subject) {
			t.Errorf("%s is taken for something else", subject)
		}
	}
	for _, s := range Streams(Partitioning{History: 4, Matching: 4}) {
		for _, filter := range s.Subjects {
			if match(filter, HintBatch(3)) {
				t.Errorf("%s stores hints, which may be lost", s.Name)
			}
		}
	}
}

func TestTheDomainOfABatchIsReadBack(t *testing.T) {
	for subject, want := range map[string]string{
		BatchHome(3, "shop", "import"): "shop",
		BatchHome(3, "a-b_c", ""):      "a-b_c",
		BatchHome(3, "home", "a.b"):    "home",
		BatchHome(4, "shop", "import"): "", BatchHome(30, "shop", "import"): "", // of other partitions
		BatchClosed(3, "shop", "import", 1): "",
		Event(3):                            "", SubmitShared(3, 1): "", UniqueKey(3, "shop", "import"): "", HintBatch(3): "",
		"yard.history.3.batch.home.": "", "yard.history.3.batch.home.shop": "", "yard.history.3.batch.home": "", "": "",
		"x.yard.history.3.batch.home.shop.1": "",
	} {
		if got := DomainOfBatchHome(3, subject); got != want {
			t.Errorf("the domain of %q is %q, want %q", subject, got, want)
		}
	}
}

// A batch's home follows from its domain and id alone, so that each program finds it. Homes are spread, also those of one domain.
func TestHomesOfBatchesAreSpread(t *testing.T) {
	n, apart := Partitioning{History: 4}, 0
	var of [4]int
	for i := range 400 {
		id := string(rune('a'+i%26)) + string(rune('a'+i/26))
		p := BatchPartition("shop", id, n)
		if p < 0 || p >= n.History || p != BatchPartition("shop", id, Partitioning{History: 4, Matching: 9}) {
			t.Fatalf("the home of %q is %d", id, p)
		}
		if of[p]++; p != BatchPartition("bank", id, n) {
			apart++
		}
		if one := BatchPartition("shop", id, Partitioning{History: 1}); one != 0 {
			t.Errorf("of one partition, the home of %q is %d", id, one)
		}
	}
	for p, homes := range of {
		if homes < 50 {
			t.Errorf("partition %d is the home of %d of 400 batches", p, homes)
		}
	}
	if apart == 0 {
		t.Error("each batch has its home where that of its name in another domain has it")
	}
}

// The home of a batch is where its record is stored: another choice in a later version would not find those that there are.
func TestHomesOfBatchesStayWhereTheyAre(t *testing.T) {
	for id, want := range map[string]int{"import": 229, "export": 232, "": 698, "a.b": 52} {
		if got := BatchPartition("shop", id, Partitioning{History: 1000}); got != want {
			t.Errorf("the home of %q of 1000 is %d, was %d", id, got, want)
		}
	}
}

// What fences members out must last longer than a try to store one, and what is stored of a batch longer than the batch.
func TestTimesOfBatchesFitTogether(t *testing.T) {
	if BatchClosedKept <= SubmitLatest {
		t.Errorf("a member may be stored %v after its batch, whose fence is kept for %v", SubmitLatest, BatchClosedKept)
	}
	if BatchLifeMax < BatchExpiresMax+BatchClosedKept+24*time.Hour {
		t.Errorf("what is stored of a batch is kept for %v, a batch for %v", BatchLifeMax, BatchExpiresMax)
	}
	if BatchesMax <= 0 {
		t.Error("a domain has no room for batches")
	}
}
