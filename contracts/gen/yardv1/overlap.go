package yardv1

import (
	"fmt"
	"strings"
)

const (
	overlapPrefix = "OVERLAP_"
	missedPrefix  = "MISSED_"
)

// Name is the rule's JSON form, such as "buffer_one".
func (o Overlap) Name() string { return strings.ToLower(strings.TrimPrefix(o.String(), overlapPrefix)) }

// MarshalText implements encoding.TextMarshaler.
func (o Overlap) MarshalText() ([]byte, error) { return []byte(o.Name()), nil }

// UnmarshalText is the inverse of MarshalText. Nothing is the default.
func (o *Overlap) UnmarshalText(text []byte) error {
	v, ok := Overlap_value[overlapPrefix+strings.ToUpper(string(text))]
	if *o = Overlap(v); len(text) > 0 && (!ok || v == 0 || o.Name() != string(text)) {
		return fmt.Errorf("%q is no rule of overlap: want skip, buffer_one, buffer_all, allow or cancel_other", text)
	}
	return nil
}

// Name is the rule's JSON form, such as "last".
func (m Missed) Name() string { return strings.ToLower(strings.TrimPrefix(m.String(), missedPrefix)) }

// MarshalText implements encoding.TextMarshaler.
func (m Missed) MarshalText() ([]byte, error) { return []byte(m.Name()), nil }

// UnmarshalText is the inverse of MarshalText. Nothing is the default.
func (m *Missed) UnmarshalText(text []byte) error {
	v, ok := Missed_value[missedPrefix+strings.ToUpper(string(text))]
	if *m = Missed(v); len(text) > 0 && (!ok || v == 0 || m.Name() != string(text)) {
		return fmt.Errorf("%q is no rule of missed runs: want all, last or skip", text)
	}
	return nil
}
