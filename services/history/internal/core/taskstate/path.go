package taskstate

import "strings"

// Path is the limits in which a slot is booked for an attempt, such as "type/email.send". It is
// what is released when the attempt is over, whatever the limits are by then. Attempts share it, so it
// is never changed; nil = nothing is booked.
type Path struct {
	refs []string
	text string
}

// NewPath is the path of refs, which it keeps; nil of none.
func NewPath(refs ...string) *Path {
	if len(refs) == 0 {
		return nil
	}
	return &Path{refs: refs, text: strings.Join(refs, " ")}
}

// Refs are the limits, in order; they must not be changed.
func (p *Path) Refs() []string {
	if p == nil {
		return nil
	}
	return p.refs
}

// String tells paths apart: a limit's name has no space in it.
func (p *Path) String() string {
	if p == nil {
		return ""
	}
	return p.text
}
