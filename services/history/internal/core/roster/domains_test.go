package roster

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// I14: names of domains that no worker is of take no memory for good, and those that have workers are kept.
func TestNamesOfDomainsAreBounded(t *testing.T) {
	r := New(LateMax)
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
	r := New(LateMax)
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

// I14: a domain that sends far too much gets no new share by the name of another one.
func TestAShareIsNotForgotten(t *testing.T) {
	r := New(LateMax)
	for r.Passes("flood", signBytesMax, time.Second) {
	}
	if !r.Passes("shop", 200, time.Second) || r.Passes("flood", 200, time.Second) {
		t.Error("a sign passes that is too much")
	}
}

// A domain that is full takes no further worker, and hears those that it has.
func TestAFullDomainHearsItsWorkers(t *testing.T) {
	r := New(LateMax)
	r.Passes("shop", 200, time.Second)
	worker := func(n int) string { return "0123456789" + strconv.Itoa(100_000+n) }
	for n := range domainWorkersMax + 1 {
		r.Heard("shop", &Sign{ID: worker(n), Every: time.Second}, time.Second)
	}
	r.Heard("shop", &Sign{ID: worker(0), Every: time.Second}, 2*time.Second)
	page, _ := r.List("shop", "", 2*domainWorkersMax)
	if len(page) != domainWorkersMax || page[0].HeardAt != 2*time.Second {
		t.Errorf("%d workers, the first was heard at %v", len(page), page[0].HeardAt)
	}
}

// What a sign says is bounded, and each bound is allowed.
func TestTheBoundsOfASign(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	full := func() Sign {
		s := Sign{ID: long(idBytesMax), Name: long(nameBytesMax), Version: long(versionBytesMax), Host: long(hostBytesMax), Every: EveryMax}
		for range tasklistsMax {
			s.Tasklists = append(s.Tasklists, long(tasklistBytesMax))
		}
		return s
	}
	if s := full(); !s.Valid(EveryMax) {
		t.Error("the largest sign is refused")
	}
	if s := (Sign{ID: "09azAZ-_09azAZ-_", Every: EveryMin}); !s.Valid(EveryMax) {
		t.Error("the smallest sign is refused")
	}
	for name, more := range map[string]func(*Sign){
		"no id": func(s *Sign) { s.ID = "" }, "a dot": func(s *Sign) { s.ID = id(1) + "." }, "another letter": func(s *Sign) { s.ID = strings.Repeat("ä", 10) },
		"id": func(s *Sign) { s.ID += "x" }, "short id": func(s *Sign) { s.ID = long(idBytesMin - 1) }, "name": func(s *Sign) { s.Name += "x" },
		"version": func(s *Sign) { s.Version += "x" }, "host": func(s *Sign) { s.Host += "x" }, "every": func(s *Sign) { s.Every++ },
		"often": func(s *Sign) { s.Every = EveryMin - 1 }, "runs": func(s *Sign) { s.RunningFor = -1 },
		"tasklists": func(s *Sign) { s.Tasklists = append(s.Tasklists, "x") }, "tasklist": func(s *Sign) { s.Tasklists[tasklistsMax-1] += "x" },
	} {
		s := full()
		if more(&s); s.Valid(EveryMax) {
			t.Errorf("%s: a sign that breaks the bound is valid", name)
		}
	}
}

// A worker that rose and fell again is said to be silent for as long as one that fell once, and not forgotten for the first time.
func TestAWorkerFallsTwice(t *testing.T) {
	r := New(LateMax)
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
	testkit.MustEqual(t, "fell again", tick(5*time.Second), 1)
	tick(7 * time.Second)
	if page, _ := r.List("shop", "", 10); len(r.Fallen()) != 1 || len(page) != 0 {
		t.Errorf("fallen %v, alive %v", r.Fallen(), page)
	}
	tick(8 * time.Second)
	if len(r.Fallen()) != 0 || r.count != 0 || len(r.fallen) != 0 {
		t.Errorf("%d are known, %v", r.count, r.Fallen())
	}
}
