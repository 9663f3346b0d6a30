package match

import (
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Partitions implements Catalog.
func (w *world) Partitions(_, tasklist string) int { return w.partsOf(tasklist) }

// Scales implements Catalog.
func (w *world) Scales(_, tasklist string) bool { return w.scales[tasklist] }
func (w *world) Strict(_, tasklist string) bool { return w.strict[tasklist] }

// Weights implements Catalog.
func (w *world) Weights(string) map[string]float64 { return w.weights }

// GroupLimits implements Catalog.
func (w *world) GroupLimits(string) map[string]int { return w.groupLimits }

// PausedGroups implements Catalog.
func (w *world) PausedGroups(domain string) map[string]bool {
	all := map[string]bool{}
	for group := range w.pausedGroups {
		if group[0] == domain[0] {
			all[group[2:]] = true
		}
	}
	return all
}

// Limits implements Catalog. They are kept by name: "d" is that of domain d, "d/a" of its type a, "d#l0" of its tasklist
// l0, "d:a,b" one that types a and b share; each with a * behind counts per group.
func (w *world) Limits(domain string) []limit.Setting {
	var all []limit.Setting
	for key, most := range w.limits {
		if l, ok := limitOf(key, domain); ok && most > 0 {
			l.Max, l.Shadow = most, w.shadow[key] && !l.PerGroup
			l.OnFull, l.OnFullAfter = w.policies[key], overflowAfter
			all = append(all, l)
		}
	}
	for key, rate := range w.rates {
		if l, ok := limitOf(key, domain); ok {
			l.Ref, l.Rate, l.Shadow = table.RateRef(l.Ref), rate, w.shadow["rate "+key]
			all = append(all, l)
		}
	}
	for key := range w.pauses { // of a tasklist or a type
		if key[0] != domain[0] {
			continue
		}
		l := limit.Setting{Ref: table.Ref("pause/" + key[1:]), Paused: true, Tasklist: key[2:]}
		if key[1] == '/' {
			l.Tasklist, l.Types = "", []string{key[2:]}
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b limit.Setting) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return all
}

// limitOf is what a name says of a domain's limit, if it is one's.
func limitOf(key, domain string) (l limit.Setting, ok bool) {
	if key, per := strings.CutSuffix(key, "*"); per {
		l, ok = limitOf(key, domain)
		l.Ref, l.PerGroup = table.PerGroupRef(l.Ref), true
		return l, ok
	}
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
		l.Ref, l.Types = "shared/x", strings.Split(key[at+1:], ",")
	}
	return l, true
}

// covers tells whether attempts of a type in a tasklist count.
func covers(l *limit.Setting, tasklist, typ string) bool {
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
	if t.group == "" {
		return all
	}
	for _, key := range all { // what counts per group
		all = append(all, key+"*="+t.group)
	}
	return all
}

// peaks are how many attempts ran at once that a limit counts together, by name or by name and group.
func (w *world) peaks(key string) map[string]int {
	all := map[string]int{}
	for name, n := range w.peak {
		if name == key || strings.HasSuffix(key, "*") && strings.HasPrefix(name, key+"=") {
			all[name] = n
		}
	}
	return all
}

// most is how many may, of a name and group.
func (w *world) most(key, name string) int {
	if _, group, ok := strings.Cut(name, "*="); ok && w.groupLimits[group] > 0 {
		return w.groupLimits[group]
	}
	return w.limits[key]
}
