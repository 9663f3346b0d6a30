package ids

import "strings"

// Limits of a domain have references, by which calls, the log and the tables name them.
const (
	// DomainLimit is that of all attempts of the domain.
	DomainLimit    = "domain"
	tasklistPrefix = "tasklist/"
	sharedPrefix   = "shared/"
	typePrefix     = "type/"
	perGroup       = "/group"
)

// TasklistLimit is the limit of a tasklist.
func TasklistLimit(tasklist string) string { return tasklistPrefix + tasklist }

// SharedLimit is a limit that types share (limits.put).
func SharedLimit(name string) string { return sharedPrefix + name }

// SharedOfLimit is the name of a limit that types share; ok is false for other limits.
func SharedOfLimit(ref string) (name string, ok bool) {
	name, ok = strings.CutPrefix(ref, sharedPrefix)
	return name, ok && !strings.Contains(name, "/")
}

// TypeLimit is the limit of a task type.
func TypeLimit(typ string) string { return typePrefix + typ }

// TypeOfLimit is the type whose limit it is; ok is false for other limits.
func TypeOfLimit(ref string) (typ string, ok bool) {
	typ, ok = strings.CutPrefix(ref, typePrefix)
	return typ, ok && !strings.Contains(typ, "/")
}

// PerGroupLimit is the limit of each group of what a limit would cover, such as "type/email.send/group".
func PerGroupLimit(of string) string { return of + perGroup }

// GroupLimit is the limit of one group, of a limit per group, such as "type/email.send/group/acme".
func GroupLimit(perGroup, group string) string { return perGroup + "/" + group }

// GroupOfLimit is the limit per group and the group whose limit it is; ok is false for other limits. No name has a slash in it.
func GroupOfLimit(ref string) (of, group string, ok bool) {
	base := DomainLimit
	if kind, rest, named := strings.Cut(ref, "/"); kind != DomainLimit && named {
		name, _, _ := strings.Cut(rest, "/")
		base = kind + "/" + name
	}
	group, ok = strings.CutPrefix(ref, base+perGroup+"/")
	if !ok {
		return "", "", false
	}
	return base + perGroup, group, true
}
