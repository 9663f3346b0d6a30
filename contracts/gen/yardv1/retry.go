package yardv1

// The JSON form of the enums of retry policies: their names in lower case. An unspecified value is left out.

import (
	"fmt"
	"strings"
)

func shortName(name, prefix string) string {
	if name = strings.TrimPrefix(name, prefix); name == "UNSPECIFIED" {
		return ""
	}
	return strings.ToLower(name)
}

// named is the number of an enum's value by its JSON form.
func named(values map[string]int32, prefix, text, what string) (int32, error) {
	v, ok := values[prefix+strings.ToUpper(text)]
	if !ok || v == 0 || strings.ToLower(text) != text {
		return 0, fmt.Errorf("%q is not %s", text, what)
	}
	return v, nil
}

// Name is the jitter's JSON form, such as "full"; "" = not specified.
func (j Jitter) Name() string { return shortName(j.String(), "JITTER_") }

// MarshalText implements encoding.TextMarshaler.
func (j Jitter) MarshalText() ([]byte, error) { return []byte(j.Name()), nil }

// UnmarshalText is the inverse of MarshalText.
func (j *Jitter) UnmarshalText(text []byte) error {
	v, err := named(Jitter_value, "JITTER_", string(text), "a jitter")
	*j = Jitter(v)
	return err
}

// Name is the JSON form, such as "dead"; "" = not specified.
func (o OnLost) Name() string { return shortName(o.String(), "ON_LOST_") }

// MarshalText implements encoding.TextMarshaler.
func (o OnLost) MarshalText() ([]byte, error) { return []byte(o.Name()), nil }

// UnmarshalText is the inverse of MarshalText.
func (o *OnLost) UnmarshalText(text []byte) error {
	v, err := named(OnLost_value, "ON_LOST_", string(text), "what follows a lost attempt")
	*o = OnLost(v)
	return err
}

// Name is the JSON form, such as "dead"; "" = not specified.
func (o OnTimeout) Name() string { return shortName(o.String(), "ON_TIMEOUT_") }

// MarshalText implements encoding.TextMarshaler.
func (o OnTimeout) MarshalText() ([]byte, error) { return []byte(o.Name()), nil }

// UnmarshalText is the inverse of MarshalText.
func (o *OnTimeout) UnmarshalText(text []byte) error {
	v, err := named(OnTimeout_value, "ON_TIMEOUT_", string(text), "what follows an attempt that took too long")
	*o = OnTimeout(v)
	return err
}
