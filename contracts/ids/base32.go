package ids

import (
	"encoding/base32"
	"strings"
)

// Crockford's alphabet in lower case: sorts like the bytes do, no I, L, O, U.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var encoding = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// values are the five bits of each character; foreign is none of the alphabet's.
var values = func() (v [256]byte) {
	for c := range v {
		v[c] = foreign
		if i := strings.IndexByte(alphabet, byte(c)); i >= 0 {
			v[c] = byte(i)
		}
	}
	return v
}()

const foreign = 0xff

// decode is the inverse of encoding.Encode, for an s of the right length. It allows
// one spelling only, since two spellings of one id would be two keys: the standard
// decoder skips line breaks and spare bits, and allocates.
func decode(dst []byte, s string) bool {
	var bits uint32
	n, at := 0, 0
	for i := range len(s) {
		v := values[s[i]]
		if v == foreign {
			return false
		}
		bits = bits<<5 | uint32(v)
		if n += 5; n >= 8 && at < len(dst) {
			n -= 8
			dst[at] = byte(bits >> n)
			at++
		}
	}
	return at == len(dst) && bits&(1<<n-1) == 0
}
