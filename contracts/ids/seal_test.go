package ids

import (
	"testing"

	"pgregory.net/rapid"
)

// A seal holds for the data, the domain and the cluster that it was made for, and for no others.
func TestASealHoldsForItsOwnAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret, domain := drawSecret(t), rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "domain")
		data := rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "data")
		tokens := NewTokens(secret)
		seal := tokens.Seal(domain, data)
		if tokens.Seal(domain, data) != seal {
			t.Fatal("the same has another seal")
		}
		bit := rapid.IntRange(0, 8*len(data)-1).Draw(t, "bit")
		other := append([]byte(nil), data...)
		other[bit/8] ^= 1 << (bit % 8)
		secret[bit%len(secret)] ^= 1
		for what, another := range map[string][SealBytes]byte{
			"other data": tokens.Seal(domain, other), "another domain": tokens.Seal(domain+"x", data), "another cluster": NewTokens(secret).Seal(domain, data),
		} {
			if another == seal {
				t.Fatal(what)
			}
		}
		if tokens.Seal(domain, append([]byte("x"), data...)) == tokens.Seal(domain+"x", data) {
			t.Fatal("a byte of the data counts as one of the domain")
		}
	})
}
