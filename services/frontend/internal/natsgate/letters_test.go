package natsgate

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gateway"
)

// TestManyLettersAreReadWithoutTheirPayloads: a request may name a hundred, each with a payload, and hundreds of such requests may be under way. All of
// one is read for itself.
func TestManyLettersAreReadWithoutTheirPayloads(t *testing.T) {
	nc, js := connect(t)
	letters, err := NewLetters(js, func() uint32 { return logversion.LetterMarks })
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

// TestManyLettersArePurgedTogether: none of them is read any more, and what was stored again meanwhile stays.
func TestManyLettersArePurgedTogether(t *testing.T) {
	for name, c := range map[string]struct {
		version uint32
		marks   int
	}{"all know marks": {logversion.LetterMarks, 20}, "an older member": {logversion.LetterMarks - 1, 0}} {
		t.Run(name, func(t *testing.T) {
			nc, js := connect(t)
			letters, err := NewLetters(js, func() uint32 { return c.version })
			if err != nil {
				t.Fatal(err)
			}
			defer letters.Close()
			ctx := t.Context()
			store := func(n uint64, parkings uint32) {
				id := ids.NewTaskID(time.UnixMilli(1_800_000_000_000), 0, n)
				data, err := (&logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: "shop", Tasklist: "mail", Parkings: parkings}}}).MarshalVT()
				if err == nil {
					_, _, err = natslog.Append(ctx, nc, natslog.Msg{Subject: topology.Dead("shop", "mail", id), Data: data})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for n := range uint64(30) {
				store(n, 0)
			}
			page, _, err := letters.Page(ctx, "shop", "mail", 0, 100, 1<<20)
			if err != nil || len(page) != 30 {
				t.Fatalf("a page of %d letters: %v", len(page), err)
			}
			var some []*gateway.Letter
			for i := range page[:20] {
				some = append(some, &page[i], nil)
			}
			if n, err := letters.Delete(ctx, "shop", some); n != 20 || err != nil {
				t.Fatalf("%d deleted: %v", n, err)
			}
			store(25, 1) // it came back and died again
			for i := range page[20:] {
				some = append(some, &page[20+i])
			}
			if n, err := letters.Delete(ctx, "shop", some); n != 30 || err != nil {
				t.Fatalf("%d deleted: %v", n, err)
			}
			left, _, err := letters.Page(ctx, "shop", "", 0, 100, 1<<20)
			if err != nil || len(left) != c.marks+1 || left[c.marks].Record.GetParkings() != 1 || c.marks > 0 && left[0].Record != nil {
				t.Errorf("left are %v: %v", left, err)
			}
			for i, l := range page {
				one, err := letters.Get(ctx, "shop", ids.TaskID(l.Record.Id))
				if err != nil || (one != nil) != (i == 25) {
					t.Errorf("letter %d is %v: %v", i, one, err)
				}
			}
		})
	}
}

// TestLettersArePurgedWhereMarksMayNotBeStored: the permissions are those of before the upgrade, so no one answers. Letters are purged one by one, as then.
func TestLettersArePurgedWhereMarksMayNotBeStored(t *testing.T) {
	srv := natskit.Run(t, func(o *server.Options) {
		deny := &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{topology.DeadAny}}}
		o.Users, o.NoAuthUser = []*server.User{{Username: "all"}, {Username: "frontend", Permissions: deny}}, "all"
	})
	all, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := provision.Apply(t.Context(), all, topology.Partitioning{History: 1, Matching: 1}, provision.Options{}); err != nil {
		t.Fatal(err)
	}
	var some []*gateway.Letter
	for n := range uint64(20) {
		id := ids.NewTaskID(time.UnixMilli(1_800_000_000_000), 0, n)
		seq, _, err := natslog.Append(t.Context(), all.Conn(), natslog.Msg{Subject: topology.Dead("shop", "mail", id), Data: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		some = append(some, &gateway.Letter{Seq: seq, Record: &logv1.Record{Id: id[:], Domain: "shop", Tasklist: "mail"}})
	}
	js, err := jetstream.New(srv.Connect(t, nats.UserInfo("frontend", ""), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})))
	if err != nil {
		t.Fatal(err)
	}
	letters, err := NewLetters(js, func() uint32 { return logversion.LetterMarks })
	if err != nil {
		t.Fatal(err)
	}
	defer letters.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if n, err := letters.Delete(ctx, "shop", some); n != 20 || err != nil {
		t.Fatalf("%d deleted: %v", n, err)
	}
	s, err := all.Stream(t.Context(), topology.DeadLetterStream)
	if err != nil || s.CachedInfo().State.Msgs != 0 {
		t.Errorf("letters are left: %v", err)
	}
}

// TestLettersAreReadHoweverTheyLie: close together, or among a neighbour's, and some with much data. Each is read once, in order.
func TestLettersAreReadHoweverTheyLie(t *testing.T) {
	nc, js := connect(t)
	letters, err := NewLetters(js, func() uint32 { return logversion.LetterMarks })
	if err != nil {
		t.Fatal(err)
	}
	defer letters.Close()
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
		data, err := (&logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: domain, Tasklist: "mail", Payload: make([]byte, size)}}}).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, natslog.Msg{Subject: topology.Dead(domain, "mail", id), Data: data})
	}
	if _, err := natslog.AppendAtomic(ctx, nc, msgs); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ limit, bytes, pages int }{{1000, 4 << 20, 1}, {33, 4 << 20, 7}, {7, 4 << 20, 31}, {1000, 64 << 10, 4}} {
		var after, read uint64
		pages := 0
		for more := true; more; pages++ {
			var page []gateway.Letter
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
