package ids

import "encoding/binary"

// Groups unpacks the groups of n triggers: names are those that occur, at an unsigned varint per trigger: 0 = none, else the place of
// its group in names, from 1. It returns nil where none has one, and false where there are not n of them or a place is not
// in names.
func Groups(names []string, at []byte, n int) ([]string, bool) {
	if len(at) == 0 {
		return nil, len(names) == 0
	}
	all := make([]string, 0, n)
	for len(at) > 0 && len(all) < n {
		place, size := binary.Uvarint(at)
		if size <= 0 || place > uint64(len(names)) {
			return nil, false
		}
		at = at[size:]
		if place == 0 {
			all = append(all, "")
		} else {
			all = append(all, names[place-1])
		}
	}
	return all, len(all) == n && len(at) == 0
}
