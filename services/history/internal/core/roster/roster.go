// Package roster is who is alive: the workers whose signs of life a process hears, and which of them fell silent.
//
// Owns: when a worker counts as silent, when nothing may be concluded since the process itself may not have heard, what
// each worker said of itself, and the bounds of all that.
//
// Never does: read a clock, end an attempt. The log decides what follows from silence.
//
// On failure: where it is full, or knows too little, no worker counts as silent; then the leases of attempts are what is left.
//
// # Silence
//
// A worker is silent if no sign came for twice its interval and Slack. It concludes so only from signs that were heard: the process sends itself a
// message now and then, over the way that signs come, and one that it sent after that time must have come. The messages are numbered. Where one
// is missing, or late, signs may be missing too, and all workers get their time again. So a process that is cut off, paused or slow takes no
// worker for silent, and one that has never heard a worker does not miss it, unless another process has (Expect).
package roster

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/deadline"
)

const (
	// Slack is how late a sign may be: a worker that has lost its NATS server needs a moment to connect to another one.
	Slack = 500 * time.Millisecond
	// EveryMin and EveryMax bound the interval of signs.
	EveryMin, EveryMax = 500 * time.Millisecond, 30 * time.Second
	// SaidFor is for how long it is said that a worker fell silent. Then it is forgotten: polls of it that waited then
	// have ended, and one that is alive after all gets tasks again, at the risk of their leases.
	SaidFor = 3 * time.Second
	// Grace is for how long a worker that another process has heard counts as heard here.
	Grace = 8 * time.Second
	// LateMax is how late a message of the process to itself may be, and how far apart two of them.
	LateMax = time.Second
	// workersMax bounds the workers, domainWorkersMax those of one domain, signsMax the signs of a domain within a
	// second: all of its workers at the shortest interval.
	workersMax, domainWorkersMax = 32_768, 4096
	// domainsMax bounds the domains that signs name, whether or not they have workers.
	domainsMax = 2 * workersMax
	signsMax   = int(domainWorkersMax * (time.Second / EveryMin))
	// signBytesMax is what a sign may have in all, also one whose strings are written with escapes. It is not read to find out what it says: what
	// takes long to read makes the process late, and then no worker of any domain is silent. A sign of signBytes or more counts as several.
	signBytesMax, signBytes = 4096, 512
)

// Bounds of a sign: its bytes and its tasklists.
const (
	idBytesMin, idBytesMax         = 16, 64
	nameBytesMax                   = 128
	versionBytesMax, hostBytesMax  = 64, 64
	tasklistsMax, tasklistBytesMax = 16, 64
)

// Sign is what a sign of life says.
type Sign struct {
	ID, Name, Version, Host string
	Tasklists               []string
	Every, RunningFor       time.Duration
	// Leaving: it is the last one.
	Leaving bool
}

// Valid tells whether a sign keeps the rules; everyMax is the longest interval.
func (s *Sign) Valid(everyMax time.Duration) bool {
	return len(s.ID) >= idBytesMin && len(s.ID) <= idBytesMax && strings.IndexFunc(s.ID, noID) < 0 &&
		s.Every >= EveryMin && s.Every <= everyMax && s.RunningFor >= 0 &&
		len(s.Name) <= nameBytesMax && len(s.Version) <= versionBytesMax && len(s.Host) <= hostBytesMax && len(s.Tasklists) <= tasklistsMax &&
		!slices.ContainsFunc(s.Tasklists, func(name string) bool { return len(name) > tasklistBytesMax })
}

func noID(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
}

// Key names a worker.
type Key struct{ Domain, ID string }

// Worker is one that is heard.
type Worker struct {
	Sign
	// Domain is whose it is, HeardAt when its last sign came.
	Domain  string
	HeardAt time.Duration

	// expected: it has not been heard here so far.
	expected bool
	// silentAt is when it fell silent; 0 = it has not.
	silentAt time.Duration
	entry    deadline.Entry
}

// fall is that a worker fell silent at a time.
type fall struct {
	worker *Worker
	at     time.Duration
}

// stands tells whether the worker has not been heard since.
func (f fall) stands() bool { return f.worker.silentAt == f.at }

func (w *Worker) key() Key { return Key{w.Domain, w.ID} }

// alive tells whether the worker is heard.
func (w *Worker) alive() bool { return w != nil && w.silentAt == 0 && !w.expected }

// domain is what is known of one domain.
type domain struct {
	workers map[string]*Worker
	// signs counts those of a second.
	second time.Duration
	signs  int
	// since is when signs of it were last passed over.
	since time.Duration
}

// Roster is the workers that a process hears. Times are on a clock that never jumps, and not 0.
type Roster struct {
	domains map[string]*domain
	count   int
	due     deadline.Heap[*Worker]
	// fallen are silent, in the order in which that was found. Those that rose since are left there for a while.
	fallen  []fall
	lateMax time.Duration
	// number and sentAt are of the last message of the process to itself that came; since is when one was missing or late.
	number        uint64
	sentAt, since time.Duration
	// listensFrom is when the first one was sent; 0 = none came so far.
	listensFrom time.Duration
}

// New makes a roster of a process that begins to listen. LateMax bounds how late its messages to itself may be.
func New(lateMax time.Duration) *Roster {
	return &Roster{lateMax: lateMax, domains: map[string]*domain{}, due: deadline.Heap[*Worker]{Entry: func(w *Worker) *deadline.Entry { return &w.entry }}}
}

// Passes tells whether a sign of a domain is to be read at all. One domain that sends far too many, or too large ones,
// does not take the others' time (I14).
func (r *Roster) Passes(name string, bytes int, now time.Duration) bool {
	if bytes > signBytesMax {
		return false
	}
	d := r.domainOf(name)
	if second := now.Truncate(time.Second); second != d.second {
		d.second, d.signs = second, 0
	}
	if d.signs += 1 + bytes/signBytes; d.signs > signsMax {
		d.since = now
		return false
	}
	return true
}

// domainOf is what is known of a domain, which may be nothing.
func (r *Roster) domainOf(name string) *domain {
	d := r.domains[name]
	if d == nil {
		if len(r.domains) >= domainsMax { // any name may come; those without workers are forgotten, which are half of them at least
			maps.DeleteFunc(r.domains, func(_ string, d *domain) bool { return len(d.workers) == 0 })
		}
		d = &domain{workers: map[string]*Worker{}}
		r.domains[name] = d
	}
	return d
}

// Heard takes in a valid sign that passes.
func (r *Roster) Heard(name string, s *Sign, now time.Duration) {
	if s.Leaving {
		if w := r.domainOf(name).workers[s.ID]; w != nil {
			r.remove(w)
		}
		return
	}
	if w := r.worker(Key{name, s.ID}); w != nil {
		w.Sign, w.HeardAt, w.silentAt, w.expected = *s, now, 0, false
		r.plan(w)
	}
}

// Expect takes in that another process has heard a worker, which may have died since. It counts as heard until its
// grace is over, and then it is missed. One that is known here is left as it is.
func (r *Roster) Expect(k Key, every, now time.Duration) {
	if r.domainOf(k.Domain).workers[k.ID] != nil {
		return
	}
	if w := r.worker(k); w != nil {
		w.Sign, w.HeardAt, w.expected = Sign{ID: k.ID, Every: every}, now+Grace, true
		r.plan(w)
	}
}

// worker is the one of a name, a new one if need be; nil if there is no room for it.
func (r *Roster) worker(k Key) *Worker {
	d := r.domainOf(k.Domain)
	w := d.workers[k.ID]
	if w == nil && r.count < workersMax && len(d.workers) < domainWorkersMax {
		w = &Worker{Domain: k.Domain}
		d.workers[k.ID] = w
		r.count++
	}
	return w
}

// Any reports whether there is a worker.
func (r *Roster) Any() bool { return r.count > 0 }

// SignsEvery is how often a worker gives signs of life; 0 = it is not heard.
func (r *Roster) SignsEvery(k Key) time.Duration {
	if d := r.domains[k.Domain]; d != nil {
		if w := d.workers[k.ID]; w != nil && w.silentAt == 0 { // also of one that is expected
			return w.Every
		}
	}
	return 0
}

// plan has a worker looked at when it may be silent.
func (r *Roster) plan(w *Worker) { r.due.Set(w, int64(r.silentFrom(w))) }

// silentFrom is when a worker is silent unless a sign comes.
func (r *Roster) silentFrom(w *Worker) time.Duration {
	return max(w.HeardAt, r.since, r.domains[w.Domain].since) + 2*w.Every + Slack
}

// Listens takes in a message of the process to itself, which it sent at a time.
func (r *Roster) Listens(number uint64, sentAt, now time.Duration) {
	if number != r.number+1 || sentAt-r.sentAt > r.lateMax || now-sentAt > r.lateMax {
		r.since = now
	}
	if r.listensFrom == 0 {
		r.listensFrom = sentAt
	}
	r.number, r.sentAt = number, sentAt
}

// KnownFor is for how long the process has listened.
func (r *Roster) KnownFor(now time.Duration) time.Duration {
	if r.listensFrom == 0 {
		return 0
	}
	return now - r.listensFrom
}

// Deaf takes in that signs may have been lost.
func (r *Roster) Deaf(now time.Duration) { r.since = now }

// Fall finds the workers that are silent by now, and forgets those of which that has been said for long enough. It tells how many it found.
func (r *Roster) Fall(now time.Duration) (found int) {
	for {
		// All signs up to sentAt have been heard.
		w, ok := r.due.PopDue(int64(r.sentAt))
		if !ok {
			break
		}
		if r.silentFrom(w) > r.sentAt {
			r.plan(w)
			continue
		}
		w.silentAt = now
		r.fallen = append(r.fallen, fall{w, now})
		found++
	}
	said := 0
	for ; said < len(r.fallen) && now-r.fallen[said].at >= SaidFor; said++ {
		if f := r.fallen[said]; f.stands() {
			r.remove(f.worker)
		}
	}
	r.fallen = slices.Delete(r.fallen, 0, said)
	return found
}

// Next is when Fall finds something unless a sign comes, if there is anything to find.
func (r *Roster) Next() (at time.Duration, ok bool) {
	first, ok := r.due.Next()
	at = time.Duration(first)
	if len(r.fallen) > 0 {
		if end := r.fallen[0].at + SaidFor; !ok || end < at {
			at, ok = end, true
		}
	}
	return at, ok
}

// Fallen are the workers that fell silent a moment ago.
func (r *Roster) Fallen() []Key {
	all := make([]Key, 0, len(r.fallen))
	for _, f := range r.fallen {
		if f.stands() {
			all = append(all, f.worker.key())
		}
	}
	return all
}

func (r *Roster) remove(w *Worker) {
	w.silentAt = 0
	r.due.Remove(w)
	delete(r.domains[w.Domain].workers, w.ID)
	r.count--
}

// These are those of some workers of a domain that are heard, by id.
func (r *Roster) These(name string, ids []string) (found []Worker) {
	d := r.domains[name]
	if d == nil {
		return nil
	}
	for _, id := range ids {
		if w := d.workers[id]; w.alive() {
			found = append(found, *w)
		}
	}
	slices.SortFunc(found, func(a, b Worker) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(found, func(a, b Worker) bool { return a.ID == b.ID })
}

// List are the first limit workers of a domain behind one, by id; more: there are more behind.
func (r *Roster) List(name, after string, limit int) (page []Worker, more bool) {
	d := r.domains[name]
	if d == nil {
		return nil, false
	}
	for _, w := range d.workers {
		if w.ID > after && w.alive() {
			page = append(page, *w)
		}
	}
	slices.SortFunc(page, func(a, b Worker) int { return strings.Compare(a.ID, b.ID) })
	return page[:min(limit, len(page))], len(page) > limit
}
