package match

import (
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Weights implements Catalog.
func (w *world) Weights(string) map[string]float64 { return w.weights }

// Limits implements Catalog. They are kept by name: "d" is that of domain d, "d/a" of its type a, "d#l0" of its tasklist
// l0, "d:a,b" one that types a and b share.
func (w *world) Limits(domain string) []Limit {
	var all []Limit
	for key, most := range w.limits {
		if l, ok := limitOf(key, domain); ok && most > 0 {
			l.Max = most
			all = append(all, l)
		}
	}
	for key, rate := range w.rates {
		if l, ok := limitOf(key, domain); ok {
			l.Ref, l.Rate = table.RateRef(l.Ref), rate
			all = append(all, l)
		}
	}
	for key := range w.pauses { // of a tasklist or a type
		if key[0] != domain[0] {
			continue
		}
		l := Limit{Ref: table.Ref("pause/" + key[1:]), Paused: true, Tasklist: key[2:]}
		if key[1] == '/' {
			l.Tasklist, l.Types = "", []string{key[2:]}
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b Limit) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return all
}

// limitOf is what a name says of a domain's limit, if it is one's.
func limitOf(key, domain string) (l Limit, ok bool) {
	at := strings.IndexAny(key, "/#:")
	if name := key[:max(at, 0)]; name != domain && key != domain {
		return l, false
	}
	switch {
	case at < 0:
		l.Ref, l.Wide = "domain", true
	case key[at] == '#':
		l.Ref, l.Tasklist = table.Ref("tasklist/"+key[at+1:]), key[at+1:]
	case key[at] == '/':
		l.Ref, l.Types = table.TypeRef(key[at+1:]), []string{key[at+1:]}
	default:
		l.Ref, l.Types = "shared", strings.Split(key[at+1:], ",")
	}
	return l, true
}

// covers tells whether attempts of a type in a tasklist count.
func (l *Limit) covers(tasklist, typ string) bool {
	return l.Wide || slices.Contains(l.Types, typ) || l.Tasklist == tasklist && tasklist != ""
}

// covering are the names of the limits that there may be for a task.
func (w *world) covering(t *task) []string {
	all := []string{t.domain, t.domain + "/" + t.typ, t.domain + "#" + t.list}
	for _, shared := range w.shared {
		if slices.Contains(strings.Split(shared[len(t.domain)+1:], ","), t.typ) && strings.HasPrefix(shared, t.domain+":") {
			all = append(all, shared)
		}
	}
	return all
}
