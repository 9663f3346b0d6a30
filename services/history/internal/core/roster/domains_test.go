package roster

import (
	"strconv"
	"testing"
	"time"
)

// I14: names of domains that no worker is of take no memory for good, and those that have workers are kept.
func TestNamesOfDomainsAreBounded(t *testing.T) {
	r := New()
	r.Passes("shop", 200, time.Second)
	r.Heard("shop", &Sign{ID: "0123456789abcdef", Every: time.Second}, time.Second)
	for i := range 3 * domainsMax {
		r.Passes(strconv.Itoa(i), 200, time.Second)
	}
	if len(r.domains) > domainsMax || len(r.domains["shop"].workers) != 1 {
		t.Errorf("%d domains are known", len(r.domains))
	}
}

// I14: a sign that is far too large is not read, and large ones use up their domain's share.
func TestLargeSignsAreNotRead(t *testing.T) {
	r := New()
	if r.Passes("shop", signBytesMax+1, time.Second) || !r.Passes("shop", signBytesMax, time.Second) {
		t.Error("the bound is not kept")
	}
	n := 0
	for r.Passes("bank", signBytesMax, time.Second) {
		n++
	}
	if n < signsMax/16 || n > signsMax/8 || !r.Passes("shop", 200, time.Second) || !r.Passes("bank", signBytesMax, 2*time.Second) {
		t.Errorf("%d of the largest signs pass in a second", n)
	}
}

// A worker that rose and fell again is said to be silent for as long as one that fell once, and not forgotten for the first time.
func TestAWorkerFallsTwice(t *testing.T) {
	r := New()
	sign := &Sign{ID: "0123456789abcdef", Every: EveryMin}
	r.Passes("shop", 200, time.Second)
	number, now := uint64(0), time.Second
	tick := func(until time.Duration) (found int) {
		for ; now <= until; now += 100 * time.Millisecond {
			number++
			r.Listens(number, now, now)
			found += r.Fall(now)
		}
		return found
	}
	tick(1100 * time.Millisecond)
	r.Heard("shop", sign, now)
	if n := tick(3 * time.Second); n != 1 || len(r.Fallen()) != 1 {
		t.Fatalf("%d fell, %v", n, r.Fallen())
	}
	r.Heard("shop", sign, now)
	if len(r.Fallen()) != 0 {
		t.Error("it is silent still")
	}
	if n := tick(5 * time.Second); n != 1 {
		t.Fatalf("%d fell again", n)
	}
	tick(7 * time.Second)
	if page, _ := r.List("shop", "", 10); len(r.Fallen()) != 1 || len(page) != 0 {
		t.Errorf("fallen %v, alive %v", r.Fallen(), page)
	}
	tick(8 * time.Second)
	if len(r.Fallen()) != 0 || r.count != 0 || len(r.fallen) != 0 {
		t.Errorf("%d are known, %v", r.count, r.Fallen())
	}
}
