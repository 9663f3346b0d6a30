package ids

import (
	"encoding/binary"
	"slices"
	"testing"
)

func TestGroupsOfTriggers(t *testing.T) {
	many := make([]string, 200)
	for i := range many {
		many[i] = string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	var all []byte
	for i := range many {
		all = binary.AppendUvarint(all, uint64(i+1))
	}
	for _, c := range []struct {
		name  string
		names []string
		at    []byte
		n     int
		want  []string
		ok    bool
	}{
		{"none", nil, nil, 3, nil, true},
		{"some", []string{"a", "b"}, []byte{1, 0, 2, 1}, 4, []string{"a", "", "b", "a"}, true},
		{"places of two bytes", many, all, 200, many, true},
		{"too few", []string{"a"}, []byte{1, 1}, 3, nil, false},
		{"too many", []string{"a"}, []byte{1, 1, 1}, 2, nil, false},
		{"no such place", []string{"a"}, []byte{2}, 1, nil, false},
		{"cut", []string{"a"}, []byte{0x80}, 1, nil, false},
		{"names of no one", []string{"a"}, nil, 1, nil, false},
	} {
		got, ok := Groups(c.names, c.at, c.n)
		if ok != c.ok || ok && !slices.Equal(got, c.want) || ok && (got == nil) != (c.want == nil) {
			t.Errorf("%s: got %q, %v", c.name, got, ok)
		}
	}
}
