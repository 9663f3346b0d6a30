package turns

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// However many callers a key has, the others wait for one turn of it.
func TestI14_KeysTakeTurns(t *testing.T) {
	line := newOrder[string](8)
	refused := 0
	for i := range 50 {
		if _, ok := line.enter("flood", fmt.Sprint("flood", i)); !ok {
			refused++
		}
	}
	for _, who := range []string{"shop0", "shop1"} {
		if now, ok := line.enter("shop", who); now || !ok {
			t.Fatalf("%s: now %v, ok %v", who, now, ok)
		}
	}
	var order []string
	for who, ok := line.next(); ok; who, ok = line.next() {
		order = append(order, who)
	}
	want := []string{"flood1", "shop0", "flood2", "shop1", "flood3", "flood4", "flood5", "flood6", "flood7", "flood8"}
	if refused != 41 || !slices.Equal(order, want) {
		t.Errorf("%d refused, order %v", refused, order)
	}
	if now, ok := line.enter("shop", "shop2"); !now || !ok {
		t.Error("the turn is still taken")
	}
}

// In any order of coming and leaving: one has the turn, each that stays gets it once, and nothing is left over.
func TestEachWhoStaysGetsOneTurn(t *testing.T) {
	for seed := range uint64(50) {
		draw := rand.New(rand.NewPCG(seed, 1))
		line := newOrder[int](3)
		keyOf, inLine, holder := map[int]string{}, map[int]bool{}, -1
		next := func() {
			who, ok := line.next()
			if ok != (len(inLine) > 0) || ok && !inLine[who] {
				t.Fatalf("seed %d: %d is next, %v; in line %v", seed, who, ok, inLine)
			}
			delete(inLine, who)
			if holder = who; !ok {
				holder = -1
			}
		}
		for who := range 300 {
			keyOf[who] = fmt.Sprint(draw.IntN(4))
			of := 0
			for w := range inLine {
				if keyOf[w] == keyOf[who] {
					of++
				}
			}
			now, ok := line.enter(keyOf[who], who)
			if now != (holder < 0) || ok != (now || of < 3) {
				t.Fatalf("seed %d: %d enters, now %v, ok %v, with %d in line", seed, who, now, ok, of)
			}
			switch {
			case now:
				holder = who
			case ok:
				inLine[who] = true
			}
			if leaver := draw.IntN(who + 1); draw.IntN(3) == 0 {
				if line.leave(keyOf[leaver], leaver) != inLine[leaver] {
					t.Fatalf("seed %d: %d leaves", seed, leaver)
				}
				delete(inLine, leaver)
			}
			if holder >= 0 && draw.IntN(2) == 0 {
				next()
			}
		}
		for holder >= 0 {
			next()
		}
		if len(line.waiting) != 0 || len(line.keys) != 0 || line.taken {
			t.Fatalf("seed %d: left over: %+v", seed, line)
		}
	}
}
