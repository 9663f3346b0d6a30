package natsgate

import (
	"math"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// TestManyLettersAreReadWithoutTheirPayloads: a request may name a hundred, each with a payload, and hundreds of such requests may be under way. All of
// one is read for itself.
func TestManyLettersAreReadWithoutTheirPayloads(t *testing.T) {
	nc, js := connect(t)
	letters, err := NewLetters(js)
	if err != nil {
		t.Fatal(err)
	}
	defer letters.Close()
	ctx := t.Context()
	var wanted []ids.TaskID
	for n, domain := range []string{"shop", "shop", "rival"} {
		id := ids.NewTaskID(time.Now(), 0, uint64(n))
		wanted = append(wanted, id)
		data, err := (&logv1.Batch{Tasks: []*logv1.Record{{
			Id: id[:], Domain: domain, Tasklist: "mail", Type: "send", Payload: make([]byte, 1000), Steps: []*logv1.Step{{Kind: 12}},
		}}}).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := natslog.Append(ctx, nc, natslog.Msg{Subject: topology.Dead(domain, "mail", id), Data: data}); err != nil {
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
