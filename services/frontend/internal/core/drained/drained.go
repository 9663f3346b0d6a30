// Package drained is what a frontend does about workers that an operator has drained, besides holding back their polls.
//
// Owns: for how long it says that their polls end, wherever these wait, and when a worker counts as gone, so that its drain is forgotten.
//
// Never does: read a clock, decide which polls are held back; that is a look at what is stored.
//
// On failure: what it says may get lost, so it is said again, for longer than any poll waits. Where it is not known whether a worker lives, its drain stays.
package drained

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// SaidFor is for how long it is said that the polls of a worker end: longer than a poll waits that was sent before.
	SaidFor = 65 * time.Second
	// sayEvery is how often, for the first sayOften, and then less often: for those that did not hear it.
	sayEvery, sayOften, sayRarely = 500 * time.Millisecond, 3 * time.Second, 5 * time.Second
	// SilentAfter is for how long a worker is not heard when its drain is forgotten: one that was cut off for less finds it as it was.
	SilentAfter = 10 * time.Minute
	// KnownAfter is for how long all have listened who would have heard it, so that it would have been heard.
	KnownAfter = time.Minute
)

// Key names a worker.
type Key struct{ Domain, ID string }

func compare(a, b Key) int { return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.ID, b.ID)) }

// Voice says whose polls end.
type Voice struct {
	// known are the workers that are drained, and since when.
	known map[Key]said
	next  time.Time
	fresh time.Time
}

type said struct {
	sinceMS int64
	until   time.Time
}

// Take takes in all workers that are drained, and since when.
func (v *Voice) Take(all map[Key]int64, now time.Time) {
	known := make(map[Key]said, len(all))
	for k, since := range all {
		s, ok := v.known[k]
		if !ok || s.sinceMS != since {
			s = said{since, now.Add(SaidFor)}
			v.next, v.fresh = now, now
		}
		known[k] = s
	}
	v.known = known
}

// Say is whose polls end, if that is to be said now.
func (v *Voice) Say(now time.Time) []Key {
	if v.next.IsZero() || now.Before(v.next) {
		return nil
	}
	var all []Key
	for k, s := range v.known {
		if now.Before(s.until) {
			all = append(all, k)
		}
	}
	if slices.SortFunc(all, compare); len(all) == 0 {
		v.next = time.Time{}
		return nil
	}
	if v.next = now.Add(sayRarely); now.Sub(v.fresh) < sayOften {
		v.next = now.Add(sayEvery)
	}
	return all
}

// Watch is which of the drained workers are gone. Domains are looked at one after the other.
type Watch struct {
	// missing is since when workers are not heard.
	missing map[Key]time.Time
	last    string
}

// Next is the domain to look at, and its drained workers; "" where there are none.
func (w *Watch) Next(all map[Key]int64) (domain string, ids []string) {
	maps.DeleteFunc(w.missing, func(k Key, _ time.Time) bool { _, drained := all[k]; return !drained })
	first := ""
	for k := range all {
		if k.Domain > w.last && (domain == "" || k.Domain < domain) {
			domain = k.Domain
		}
		if first == "" || k.Domain < first {
			first = k.Domain
		}
	}
	domain = cmp.Or(domain, first)
	w.last = domain
	for k := range all {
		if k.Domain == domain {
			ids = append(ids, k.ID)
		}
	}
	slices.Sort(ids)
	return domain, ids
}

// Looked takes in which of some workers of a domain are heard, by those who have listened for a time, and returns those that are gone.
func (w *Watch) Looked(domain string, ids []string, heard map[string]bool, knownFor time.Duration, now time.Time) (gone []string) {
	if w.missing == nil {
		w.missing = map[Key]time.Time{}
	}
	for _, id := range ids {
		k := Key{domain, id}
		since, missing := w.missing[k]
		switch {
		case heard[id]:
			delete(w.missing, k)
		case knownFor < KnownAfter: // it may live
		case !missing:
			w.missing[k] = now
		case now.Sub(since) >= SilentAfter:
			gone = append(gone, id)
		}
	}
	return gone
}
