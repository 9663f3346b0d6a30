package yardv1

import (
	"fmt"
	"strings"
)

const onFullPrefix = "ON_FULL_"

// Name is the policy's JSON form, such as "reject_newest".
func (o OnFull) Name() string { return strings.ToLower(strings.TrimPrefix(o.String(), onFullPrefix)) }

// MarshalText implements encoding.TextMarshaler.
func (o OnFull) MarshalText() ([]byte, error) { return []byte(o.Name()), nil }

// UnmarshalText is the inverse of MarshalText. Nothing is the default.
func (o *OnFull) UnmarshalText(text []byte) error {
	v, ok := OnFull_value[onFullPrefix+strings.ToUpper(string(text))]
	if *o = OnFull(v); len(text) > 0 && (!ok || o.Name() != string(text)) {
		return fmt.Errorf("%q is not what a limit does that is full", text)
	}
	return nil
}
