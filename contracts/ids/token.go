package ids

import (
	"encoding/binary"
	"fmt"
)

// Token is the fence of one attempt: only who presents it may complete, fail
// or extend the attempt. Version counts the grants of the task; Nonce is
// chosen by the asker of the grab, so that a repeated grab gets the same
// verdict and a rival's another.
type Token struct {
	Position Position
	Version  uint32
	Nonce    uint64
}

const tokenBytes = 20

// TokenChars is the length of a printed token.
const TokenChars = 32

// String prints the 32 characters.
func (t Token) String() string {
	var raw [tokenBytes]byte
	binary.BigEndian.PutUint64(raw[0:], uint64(t.Position))
	binary.BigEndian.PutUint32(raw[8:], t.Version)
	binary.BigEndian.PutUint64(raw[12:], t.Nonce)
	var b [TokenChars]byte
	encoding.Encode(b[:], raw[:])
	return string(b[:])
}

// ParseToken is the inverse of String.
func ParseToken(s string) (Token, error) {
	if len(s) != TokenChars {
		return Token{}, fmt.Errorf("an attempt token has %d characters, not %d", TokenChars, len(s))
	}
	var raw [tokenBytes]byte
	if n, err := encoding.Decode(raw[:], []byte(s)); err != nil || n != tokenBytes {
		return Token{}, fmt.Errorf("%q is not an attempt token", s)
	}
	return Token{
		Position: Position(binary.BigEndian.Uint64(raw[0:])),
		Version:  binary.BigEndian.Uint32(raw[8:]),
		Nonce:    binary.BigEndian.Uint64(raw[12:]),
	}, nil
}
