package simulation

import (
	"maps"
	"slices"
)

// perGroup follows the name of a limit that counts each group for itself.
const perGroup = "%"

// groupMax is how many attempts of some groups may run, whatever the limit says.
var groupMax = map[string]int{"small": 1, "large": 3}

// perGroups are the names of those that there may be in a domain.
func (m *matching) perGroups(domain string) []string {
	if !m.plan.has(groupLimits) {
		return nil
	}
	return []string{few + perGroup, wide + perGroup, shared + perGroup, ofTasklist + tasklists[domain][0] + perGroup}
}

// limitGroups has some limits of a domain count each group for itself.
func (m *matching) limitGroups(domain string) {
	for i, name := range m.perGroups(domain) {
		if i < 2 {
			m.setLimit(domain, name, 1+i)
		}
	}
}

// groupSlots is how many slots a group has of a limit per group that gives most to each; of another limit there are most.
func groupSlots(group string, most int) int {
	if own, ok := groupMax[group]; ok && most > 0 {
		return own
	}
	return most
}

// groupsFree holds that no group of a domain has a slot left in use.
func (c *matchChecker) groupsFree(domain string) {
	m, met := c.m, map[string]bool{}
	for _, w := range m.parts {
		for _, group := range w.groupOf {
			met[group] = true
		}
	}
	n := m.nodes[domain]
	for _, name := range m.perGroups(domain) {
		for _, group := range slices.Sorted(maps.Keys(met)) {
			if m.limits[domain][name] == 0 {
				continue
			}
			if used := n.tables.GroupSlots(domain, limitOf(name).Ref, group, n.clock()*1000); used != 0 {
				m.violated("I8: %d slots of group %s of %s %s are in use, and all tasks have ended", used, group, domain, name)
			}
		}
	}
}
