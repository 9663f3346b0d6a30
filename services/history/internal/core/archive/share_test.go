package archive

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Every item is in one message, of its retention, in order; a message is of one domain or of small ones, and no larger
// than it may be.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Item {
			domain := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "domain")
			return Item{
				Domain: domain, RetentionS: map[string]int64{"a": 60, "b": 60, "c": 60, "d": 3600}[domain],
				Bytes: rapid.OneOf(rapid.IntRange(1, 2000), rapid.IntRange(1, 3*MessageBytes)).Draw(t, "bytes"),
			}
		})).Draw(t, "items")
		total := map[string]int{}
		for _, i := range items {
			total[i.Domain] += i.Bytes
		}
		seen := map[int]bool{}
		for _, m := range Share(items) {
			bytes, before := 0, -1
			for _, i := range m.Items {
				if seen[i] || i <= before {
					t.Fatalf("item %d comes again or out of order", i)
				}
				seen[i], before = true, i
				bytes += items[i].Bytes
				if items[i].RetentionS != m.RetentionS {
					t.Fatalf("item %d is kept for %d s in a message of %d s", i, items[i].RetentionS, m.RetentionS)
				}
				if own := total[items[i].Domain] >= ownBytes; own != (m.Domain == items[i].Domain) || !own && m.Domain != "" {
					t.Fatalf("item %d of %q, which has %d bytes, is in a message of %q", i, items[i].Domain, total[items[i].Domain], m.Domain)
				}
			}
			if bytes != m.Bytes || bytes > MessageBytes && len(m.Items) > 1 {
				t.Fatalf("%d items have %d bytes, the message says %d", len(m.Items), bytes, m.Bytes)
			}
		}
		if len(seen) != len(items) {
			t.Fatalf("%d of %d items are stored", len(seen), len(items))
		}
	})
}

// Messages are filled: neighbours of one kind would not have fitted into one.
func TestShareFillsMessages(t *testing.T) {
	items := make([]Item, 1000)
	for i := range items {
		items[i] = Item{Domain: "a", RetentionS: 1, Bytes: MessageBytes / 4}
	}
	testkit.Equal(t, "messages", len(Share(items)), 250)
	if got := Share(items[:2]); len(got) != 1 || got[0].Domain != "a" {
		t.Errorf("a domain with just enough: %+v", got)
	}
	if got := Share(items[:1]); len(got) != 1 || got[0].Domain != "" {
		t.Errorf("a domain with less: %+v", got)
	}
}
