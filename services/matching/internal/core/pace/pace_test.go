package pace

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// I14: one that changes its many settings without end takes little of a shard's time, and delays no one else's changes.
func TestI14_ADomainOfManySettingsIsHeardOfSeldom(t *testing.T) {
	c := New()
	sizes := map[string]int{"flood": 5000, "shop": 3, "vast": 1_000_000}
	heard := map[string][]time.Duration{}
	for now := time.Duration(0); now < 10*time.Second; now += time.Millisecond {
		c.Changed("flood")
		c.Changed("vast")
		if now%time.Second == 123*time.Millisecond {
			c.Changed("shop")
		}
		for _, name := range c.Take(now, func(name string) int { return sizes[name] }) {
			heard[name] = append(heard[name], now)
		}
	}
	testkit.Equal(t, "5000 settings were heard of times in 10 s", len(heard["flood"]), 20)
	testkit.Equal(t, "a million settings were heard of times in 10 s", len(heard["vast"]), 10)
	for i, at := range heard["shop"] {
		if want := time.Duration(i)*time.Second + 123*time.Millisecond; at != want {
			t.Errorf("change %d of a small domain was heard of at %v, want %v", i, at, want)
		}
	}
	testkit.Equal(t, "changes of a small domain were heard of", len(heard["shop"]), 10)
}

// However changes come: each is heard of, at once or when the rest is over, Next says when, and nothing is kept for long.
func TestNoChangeIsLost(t *testing.T) {
	rng := testkit.Seed(t)
	for range 50 {
		c, now := New(), time.Duration(0)
		open, from := map[string]time.Duration{}, map[string]time.Duration{}
		settings := func(name string) int { return int(name[1]-'0') * 1000 }
		for range 500 {
			if rng.IntN(2) == 0 {
				name := fmt.Sprint("d", rng.IntN(6))
				c.Changed(name)
				if _, known := open[name]; !known {
					open[name] = now
				}
			}
			before := now
			now += time.Duration(rng.IntN(50)) * time.Millisecond
			wantNext, wantSome := time.Duration(0), false
			var want []string
			for name := range open {
				if at := max(from[name], before); !wantSome || at < wantNext {
					wantNext, wantSome = at, true
				}
				if now >= from[name] {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			if next, some := c.Next(); some && max(next, before) != wantNext || some != wantSome {
				t.Fatalf("next is %v %v, want %v %v", next, some, wantNext, wantSome)
			}
			if due := c.Take(now, settings); !slices.Equal(due, want) {
				t.Fatalf("at %v: %v, want %v", now, due, want)
			}
			for _, name := range want {
				delete(open, name)
				from[name] = now + time.Duration(settings(name))*PerSetting
			}
		}
		c.Take(now+RestMax, settings)
		c.Take(now+3*RestMax, settings)
		if _, some := c.Next(); some || len(c.domains) > 0 {
			t.Fatalf("%d domains are kept", len(c.domains))
		}
	}
}
