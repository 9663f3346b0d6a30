package yardv1

import (
	"fmt"
	"strings"
)

const orderPolicyPrefix = "ORDER_POLICY_"

// Name is its JSON form, such as "block".
func (p OrderPolicy) Name() string {
	return strings.ToLower(strings.TrimPrefix(p.String(), orderPolicyPrefix))
}

// MarshalText implements encoding.TextMarshaler.
func (p OrderPolicy) MarshalText() ([]byte, error) { return []byte(p.Name()), nil }

// UnmarshalText is the inverse of MarshalText. Nothing is the default.
func (p *OrderPolicy) UnmarshalText(text []byte) error {
	v, ok := OrderPolicy_value[orderPolicyPrefix+strings.ToUpper(string(text))]
	if *p = OrderPolicy(v); len(text) > 0 && (!ok || p.Name() != string(text)) {
		return fmt.Errorf("%q is not what becomes of an order key", text)
	}
	return nil
}
