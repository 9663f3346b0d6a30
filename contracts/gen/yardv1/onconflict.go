package yardv1

import (
	"fmt"
	"strings"
)

const onConflictPrefix = "ON_CONFLICT_"

// Name is its JSON form, such as "reject".
func (o OnConflict) Name() string {
	return strings.ToLower(strings.TrimPrefix(o.String(), onConflictPrefix))
}

// MarshalText implements encoding.TextMarshaler.
func (o OnConflict) MarshalText() ([]byte, error) { return []byte(o.Name()), nil }

// UnmarshalText is the inverse of MarshalText. Nothing is the default.
func (o *OnConflict) UnmarshalText(text []byte) error {
	v, ok := OnConflict_value[onConflictPrefix+strings.ToUpper(string(text))]
	if *o = OnConflict(v); len(text) > 0 && (!ok || o.Name() != string(text)) {
		return fmt.Errorf("%q is not what follows where a unique key is taken", text)
	}
	return nil
}
