package ids

import "strings"

// Place is where in a lane submits are filed, as their subjects end: in a domain's part of it, "shop", or in that of one of
// its tasklists, "shop.mail". The empty place is the whole lane: what domains share is filed there and nowhere else.
type Place string

// PlaceOf is the place of a tasklist of a domain; "" = that of the domain, for messages of several tasklists.
func PlaceOf(domain, tasklist string) Place {
	if tasklist == "" {
		return Place(domain)
	}
	return Place(domain + "." + tasklist)
}

// Domain is the domain; "" = the whole lane.
func (p Place) Domain() string {
	domain, _, _ := strings.Cut(string(p), ".")
	return domain
}

// Tasklist is the tasklist; "" = a domain, or the whole lane.
func (p Place) Tasklist() string {
	_, tasklist, _ := strings.Cut(string(p), ".")
	return tasklist
}

// Parent is the place that p is a part of: the domain of a tasklist, or the whole lane.
func (p Place) Parent() Place {
	if p.Tasklist() != "" {
		return Place(p.Domain())
	}
	return ""
}

// Has tells whether o is p or a part of it.
func (p Place) Has(o Place) bool {
	return p == "" || p == o || o.Parent() == p
}
