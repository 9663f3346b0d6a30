package yardv1

import (
	"fmt"
	"strings"
)

const batchStatePrefix = "BATCH_STATE_"

// Name is the state's JSON form, such as "closed".
func (s BatchState) Name() string {
	return strings.ToLower(strings.TrimPrefix(s.String(), batchStatePrefix))
}

// Over tells whether the state is a last one.
func (s BatchState) Over() bool {
	return s == BatchState_BATCH_STATE_COMPLETED || s == BatchState_BATCH_STATE_EXPIRED
}

// MarshalText implements encoding.TextMarshaler.
func (s BatchState) MarshalText() ([]byte, error) { return []byte(s.Name()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *BatchState) UnmarshalText(text []byte) error {
	v, ok := BatchState_value[batchStatePrefix+strings.ToUpper(string(text))]
	if !ok || v == 0 || BatchState(v).Name() != string(text) {
		return fmt.Errorf("%q is not a state of a batch", text)
	}
	*s = BatchState(v)
	return nil
}
