package natsgate

import (
	"math"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/operate"
)

// TestManyLettersAreReadWithoutTheirPayloads: a request may name a hundred, each with a payload, and hundreds of such requests may be under way. All of
// one is read for itself.
func TestManyLettersAreReadWithoutTheirPayloads(t *testing.T) {
	nc, js := connect(t)
	reader, err := NewReader(js)
	testkit.NoError(t, err)
	defer reader.Close()
	letters := Letters{reader}
	ctx := t.Context()
	var wanted []ids.TaskID
	for n, domain := range []string{"shop", "shop", "rival"} {
		id := ids.NewTaskID(time.Now(), 0, uint64(n))
		wanted = append(wanted, id)
		if _, _, err := natslog.Append(ctx, nc, natslog.Msg{Subject: topology.Dead(domain, "mail", id), Data: testkit.Encoded(t, &logv1.Batch{Tasks: []*logv1.Record{{
			Id: id[:], Domain: domain, Tasklist: "mail", Type: "send", Payload: make([]byte, 1000), Steps: []*logv1.Step{{Kind: 12}},
		}}})}); err != nil {
			t.Fatal(err)
		}
	}
	found, err := letters.Find(ctx, "shop", wanted)
	if err != nil || found[0] == nil || found[1] == nil || found[2] != nil {
		t.Fatalf("found %v: %v", found, err)
	}
	page, more, err := letters.Page(ctx, "shop", "", 0, 10, 1<<20)
	if err != nil || more || len(page) != 2 {
		t.Fatalf("a page of %d letters, more %v: %v", len(page), more, err)
	}
	for _, r := range []*logv1.Record{found[0].Record, found[1].Record, page[0].Record, page[1].Record} {
		if len(r.Payload) > 0 || len(r.Steps) > 0 || r.Type != "send" {
			t.Errorf("read %v", r)
		}
	}
	whole, err := letters.Get(ctx, "shop", wanted[0])
	if err != nil || len(whole.Record.Payload) != 1000 || len(whole.Record.Steps) != 1 {
		t.Errorf("one was read as %v: %v", whole, err)
	}
	for _, after := range []uint64{whole.Seq + 2, math.MaxInt64} { // a cursor that was made up
		if page, more, err := letters.Page(ctx, "shop", "", after, 10, 1<<20); err != nil || more || len(page) != 0 {
			t.Errorf("behind %d: %d letters, more %v: %v", after, len(page), more, err)
		}
	}
}

// TestManyLettersArePurgedTogether: none of them is read any more, and what was stored again meanwhile stays.
func TestManyLettersArePurgedTogether(t *testing.T) {
	nc, js := connect(t)
	reader, err := NewReader(js)
	testkit.NoError(t, err)
	defer reader.Close()
	letters := Letters{reader}
	ctx := t.Context()
	store := func(n uint64, parkings uint32) {
		id := ids.NewTaskID(time.UnixMilli(1_800_000_000_000), 0, n)
		data, err := (&logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: "shop", Tasklist: "mail", Parkings: parkings}}}).MarshalVT()
		if err == nil {
			_, _, err = natslog.Append(ctx, nc, natslog.Msg{Subject: topology.Dead("shop", "mail", id), Data: data})
		}
		testkit.NoError(t, err)
	}
	for n := range uint64(30) {
		store(n, 0)
	}
	page, _, err := letters.Page(ctx, "shop", "mail", 0, 100, 1<<20)
	if err != nil || len(page) != 30 {
		t.Fatalf("a page of %d letters: %v", len(page), err)
	}
	var some []*operate.DeadLetter
	for i := range page[:20] {
		some = append(some, &page[i], nil)
	}
	if n, err := letters.Delete(ctx, some); n != 20 || err != nil {
		t.Fatalf("%d deleted: %v", n, err)
	}
	store(25, 1) // it came back and died again
	for i := range page[20:] {
		some = append(some, &page[20+i])
	}
	if n, err := letters.Delete(ctx, some); n != 10 || err != nil {
		t.Fatalf("%d deleted, of which ten were there: %v", n, err)
	}
	left, _, err := letters.Page(ctx, "shop", "", 0, 100, 1<<20)
	if err != nil || len(left) != 1 || left[0].Record.GetParkings() != 1 {
		t.Errorf("left are %v: %v", left, err)
	}
	for i, l := range page {
		one, err := letters.Get(ctx, "shop", ids.TaskID(l.Record.Id))
		if err != nil || (one != nil) != (i == 25) {
			t.Errorf("letter %d is %v: %v", i, one, err)
		}
	}
}

// TestLettersAreReadHoweverTheyLie: close together, or among a neighbour's, and some with much data. Each is read once, in order.
func TestLettersAreReadHoweverTheyLie(t *testing.T) {
	nc, js := connect(t)
	reader, err := NewReader(js)
	testkit.NoError(t, err)
	defer reader.Close()
	letters := Letters{reader}
	ctx := t.Context()
	var msgs []natslog.Msg
	for n := range uint64(300) {
		domain, size := "shop", 10
		if n >= 100 && n < 200 && n%9 != 0 {
			domain = "rival"
		}
		if n%50 == 49 {
			size = 100 << 10
		}
		id := ids.NewTaskID(time.UnixMilli(1_800_000_000_000), 0, n)
		msgs = append(msgs, natslog.Msg{Subject: topology.Dead(domain, "mail", id), Data: testkit.Encoded(t, &logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: domain, Tasklist: "mail", Payload: make([]byte, size)}}})})
	}
	for _, r := range natslog.AppendEach(ctx, nc, msgs) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	for _, c := range []struct{ limit, bytes, pages int }{{1000, 4 << 20, 1}, {33, 4 << 20, 7}, {7, 4 << 20, 31}, {1000, 64 << 10, 4}} {
		var after, read uint64
		pages := 0
		for more := true; more; pages++ {
			var page []operate.DeadLetter
			if page, more, err = letters.Page(ctx, "shop", "", after, c.limit, c.bytes); err != nil || len(page) > c.limit {
				t.Fatalf("a page of %d letters: %v", len(page), err)
			}
			for _, l := range page {
				if l.Seq <= after || l.Record.Domain != "shop" {
					t.Fatalf("behind %d lies %v", after, l)
				}
				after = l.Seq
				read++
			}
		}
		if read != 211 || pages < c.pages || pages > c.pages+1 {
			t.Errorf("limits %d and %d: %d letters on %d pages", c.limit, c.bytes, read, pages)
		}
	}
}
