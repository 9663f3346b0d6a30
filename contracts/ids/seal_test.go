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
		if !tokens.Sealed(domain, data, seal[:]) {
			t.Fatal("its own seal is refused")
		}
		bit := rapid.IntRange(0, 8*len(data)-1).Draw(t, "bit")
		other := append([]byte(nil), data...)
		other[bit/8] ^= 1 << (bit % 8)
		secret[bit%len(secret)] ^= 1
		for what, holds := range map[string]bool{
			"other data": tokens.Sealed(domain, other, seal[:]), "another domain": tokens.Sealed(domain+"x", data, seal[:]),
			"another cluster": NewTokens(secret).Sealed(domain, data, seal[:]), "a short seal": tokens.Sealed(domain, data, seal[:8]),
		} {
			if holds {
				t.Fatal(what)
			}
		}
		if seal = tokens.Seal(domain, append([]byte("x"), data...)); tokens.Sealed(domain+"x", data, seal[:]) {
			t.Fatal("a byte of the data counts as one of the domain")
		}
	})
}
