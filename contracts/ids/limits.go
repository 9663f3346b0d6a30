package ids

import "strings"

// Limits of a domain have references, by which calls, the log and the tables name them.
const (
	// DomainLimit is that of all attempts of the domain.
	DomainLimit    = "domain"
	tasklistPrefix = "tasklist/"
	sharedPrefix   = "shared/"
	typePrefix     = "type/"
)

// TasklistLimit is the limit of a tasklist.
func TasklistLimit(tasklist string) string { return tasklistPrefix + tasklist }

// SharedLimit is a limit that types share (limits.put).
func SharedLimit(name string) string { return sharedPrefix + name }

// SharedOfLimit is the name of a limit that types share; ok is false for other limits.
func SharedOfLimit(ref string) (name string, ok bool) { return strings.CutPrefix(ref, sharedPrefix) }

// TypeLimit is the limit of a task type.
func TypeLimit(typ string) string { return typePrefix + typ }

// TypeOfLimit is the type whose limit it is; ok is false for other limits.
func TypeOfLimit(ref string) (typ string, ok bool) { return strings.CutPrefix(ref, typePrefix) }
