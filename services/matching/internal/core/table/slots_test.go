package table

import (
	"reflect"
	"testing"
	"time"
)

// pay is a stance on the limit of type a.
func pay(most, held int) Stance { return Stance{Ref: TypeRef("a"), Max: most, Held: held} }

func TestI8_WhatIsRefusedChangesNothing(t *testing.T) {
	r := open(t)
	r.do(Call{Seq: Seq{2, 5}, Stances: []Stance{pay(9, 4)}})
	call := func(change func(c *Call)) Call {
		c := Call{
			Domain: "d", Shards: 1, Epoch: "e", Seq: Seq{2, 6}, Stances: []Stance{{Ref: "type/b", Max: 1, Held: 1}, pay(9, 1)},
			Put: []Chunk{chunk("a", 1, 1)}, Wants: []Want{want(1, "a1")},
		}
		change(&c)
		return c
	}
	for name, c := range map[string]Call{
		"the same call":              call(func(c *Call) { c.Seq = Seq{2, 5} }),
		"an earlier call":            call(func(c *Call) { c.Seq = Seq{2, 4} }),
		"the old owner's":            call(func(c *Call) { c.Seq = Seq{1, 99} }),
		"the same, of another epoch": call(func(c *Call) { c.Seq, c.Epoch = Seq{2, 5}, "f" }),
	} {
		if out := r.table.Do(c, now*1000); !reflect.DeepEqual(out, Outcome{Overtaken: true}) {
			t.Errorf("%s: %+v", name, out)
		}
	}
	for name, c := range map[string]Call{
		"another epoch":  call(func(c *Call) { c.Epoch = "f" }),
		"another shard":  call(func(c *Call) { c.Shard = 7 }),
		"another domain": call(func(c *Call) { c.Domain = "x" }),
	} {
		if out := r.table.Do(c, now*1000); !reflect.DeepEqual(out, Outcome{Lost: true}) {
			t.Errorf("%s: %+v", name, out)
		}
	}
	if n := r.table.Slots("d", []Ref{"type/a", "type/b"}, now); n[0] != 4 || n[1] != 0 {
		t.Errorf("slots %v", n)
	}
	if got := r.pops(want(9, "a")); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
	if out := r.table.Do(call(func(*Call) {}), now*1000); out.Overtaken || out.Lost || out.Limits[1].Used != 2 {
		t.Errorf("a later call: %+v", out)
	}
	r.table.Forget()
	if out := r.table.Do(call(func(c *Call) { c.Seq.Call++ }), now*1000); !out.Lost {
		t.Errorf("forgotten: %+v", out)
	}
}

func TestAnEntryExpiresToTheMillisecond(t *testing.T) {
	for _, c := range []struct {
		ttl   time.Duration
		after int64 // ms
	}{{time.Second, 301_000}, {0, 300_000}, {-time.Hour, 300_000}} {
		r := open(t)
		s := pay(9, 4)
		s.TTL = c.ttl
		r.do(Call{Stances: []Stance{s}})
		for ms, used := range map[int64]int{c.after - 1: 4, c.after: 0} {
			if n := r.table.Slots("d", []Ref{"none", "type/a"}, now+ms); n[0] != 0 || n[1] != used {
				t.Errorf("%v: %v after %d ms, want %d", c.ttl, n, ms, used)
			}
		}
		r.now += c.after - 1
		if out := r.do(Call{Shard: 1, Shards: 2, Stances: []Stance{pay(9, 1)}}); out.Limits[0] != (LimitState{Used: 5}) {
			t.Errorf("%v: %+v", c.ttl, out.Limits)
		}
		r.now++
		if out := r.do(Call{Shard: 1, Shards: 2, Stances: []Stance{pay(9, 1)}}); out.Limits[0] != (LimitState{Used: 1}) {
			t.Errorf("%v: %+v, expired but known", c.ttl, out.Limits)
		}
	}
}

func TestADroppedLimitIsNew(t *testing.T) {
	r := open(t)
	for shard := range 2 {
		r.do(Call{Shard: shard, Shards: 2, Stances: []Stance{pay(9, 1)}})
	}
	r.table.Drop("x", "type/a")
	r.table.Drop("d", "type/a")
	if out := r.do(Call{Shards: 2, Stances: []Stance{pay(9, 1)}}); out.Limits[0] != (LimitState{Used: 1, Restoring: true}) {
		t.Fatalf("%+v", out.Limits)
	}
	if n := r.table.Slots("x", []Ref{"type/a"}, now); n[0] != 0 {
		t.Fatalf("%v in a domain that is not known", n)
	}
}
