package ids

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

func drawSecret(t *rapid.T) (secret [TokenSecretBytes]byte) {
	copy(secret[:], rapid.SliceOfN(rapid.Byte(), TokenSecretBytes, TokenSecretBytes).Draw(t, "secret"))
	return secret
}

func drawID(t *rapid.T) TaskID {
	return NewTaskID(time.UnixMilli(rapid.Int64Range(0, 1<<47).Draw(t, "ms")), rapid.IntRange(0, 1<<16-1).Draw(t, "p"), rapid.Uint64().Draw(t, "random"))
}

func TestTokenRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens, id, tok := NewTokens(drawSecret(t)), drawID(t), drawToken(t)
		s := tokens.Print(id, tok)
		if got, err := tokens.Read(id, s); len(s) != TokenChars || err != nil || got != tok {
			t.Fatalf("token %+v is %s: %+v %v", tok, s, got, err)
		}
	})
}

// A nonce says whether a slot is scarce, whatever the random number is, keeps the rest of it, and says so still where it was
// printed and read.
func TestANonceSaysWhetherSlotsAreScarce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random, scarce := rapid.Uint64().Draw(t, "random"), rapid.Bool().Draw(t, "scarce")
		nonce := Nonce(random, scarce)
		if Scarce(nonce) != scarce || nonce<<1 != random<<1 {
			t.Fatalf("the nonce of %x, scarce %v, is %x, scarce %v", random, scarce, nonce, Scarce(nonce))
		}
		tokens, id := NewTokens(drawSecret(t)), drawID(t)
		if got, err := tokens.Read(id, tokens.Print(id, Token{Nonce: nonce})); err != nil || Scarce(got.Nonce) != scarce {
			t.Fatalf("printed and read it is %x, %v", got.Nonce, err)
		}
	})
}

// The check is CBC-MAC as crypto/cipher has it.
func TestTokenCheckIsCBCMAC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret, id, tok := drawSecret(t), drawID(t), drawToken(t)
		input := binary.BigEndian.AppendUint64(id[:], uint64(tok.Position))
		input = binary.BigEndian.AppendUint32(input, tok.Version)
		input = append(binary.BigEndian.AppendUint64(input, tok.Nonce), make([]byte, 12)...)
		block, err := aes.NewCipher(secret[:])
		checktest.NoError(t, err)
		cipher.NewCBCEncrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(input, input)
		var raw [tokenBytes + checkBytes]byte
		if !decode(raw[:], NewTokens(secret).Print(id, tok)) || string(raw[tokenBytes:]) != string(input[32:40]) {
			t.Fatalf("check %x, want %x", raw[tokenBytes:], input[32:40])
		}
	})
}

// R6: whatever is changed in a token, in the task it is presented for or in the
// secret, the token is refused.
func TestAnyFlippedBitIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret, id, tok := drawSecret(t), drawID(t), drawToken(t)
		tokens := NewTokens(secret)
		s := tokens.Print(id, tok)
		refused := func(what string, i int, by *Tokens, id TaskID, s string) {
			if got, err := by.Read(id, s); err == nil || got != (Token{}) {
				t.Fatalf("bit %d of the %s: read as %+v, %v", i, what, got, err)
			}
		}
		for i := range 5 * TokenChars {
			b := []byte(s)
			b[i/5] = alphabet[values[b[i/5]]^1<<(i%5)]
			refused("printed token", i, tokens, id, string(b))
		}
		for i := range 8 * len(id) {
			other := id
			other[i/8] ^= 1 << (i % 8)
			refused("task id", i, tokens, other, s)
		}
		for i := range 8 * len(secret) {
			other := secret
			other[i/8] ^= 1 << (i % 8)
			refused("secret", i, NewTokens(other), id, s)
		}
	})
}

func TestForgedAndMalformedTokensAreToldApart(t *testing.T) {
	tokens, id := NewTokens([TokenSecretBytes]byte{1}), NewTaskID(time.UnixMilli(1), 2, 3)
	s := tokens.Print(id, Token{1, 2, 3})
	if _, err := NewTokens([TokenSecretBytes]byte{2}).Read(id, s); !errors.Is(err, ErrForgedToken) {
		t.Errorf("another cluster's: %v", err)
	}
	for _, s := range []string{"", s[1:], s + "0", strings.ToUpper(s), "!" + s[1:], s[:40] + "\n\n\n\n\n", s[:44] + "1"} {
		if _, err := tokens.Read(id, s); err == nil || errors.Is(err, ErrForgedToken) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func FuzzReadToken(f *testing.F) {
	tokens, id := NewTokens([TokenSecretBytes]byte{1}), NewTaskID(time.UnixMilli(1), 2, 3)
	f.Add(tokens.Print(id, Token{1, 2, 3}))
	f.Add(strings.Repeat("0", TokenChars))
	f.Fuzz(func(t *testing.T, s string) {
		if tok, err := tokens.Read(id, s); err == nil && tokens.Print(id, tok) != s {
			t.Errorf("%q has another spelling", s)
		}
	})
}

func BenchmarkTokenPrint(b *testing.B) {
	tokens, id := NewTokens([TokenSecretBytes]byte{1}), NewTaskID(time.UnixMilli(1), 2, 3)
	b.ReportAllocs()
	for i := range b.N {
		tokens.Print(id, Token{1, 2, uint64(i)})
	}
}

func BenchmarkTokenRead(b *testing.B) {
	tokens, id := NewTokens([TokenSecretBytes]byte{1}), NewTaskID(time.UnixMilli(1), 2, 3)
	s := tokens.Print(id, Token{1, 2, 3})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokens.Read(id, s); err != nil {
			b.Fatal(err)
		}
	}
}
