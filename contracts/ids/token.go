package ids

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// Token is the fence of one attempt: only who presents it may complete, fail
// or extend the attempt. Version counts the grants of the task; Nonce is
// chosen by the asker of the grab, so that a repeated grab gets the same
// verdict and a rival's another (Nonce).
type Token struct {
	Position Position
	Version  uint32
	Nonce    uint64
}

// Same tells whether t and o are tokens of one attempt.
func (t Token) Same(o Token) bool {
	return t.Version == o.Version && t.Nonce == o.Nonce && t.Position.Same(o.Position)
}

// nonceScarce is the bit of a nonce that says that the attempt holds a slot of a limit with few to spare.
const nonceScarce = 1 << 63

// Nonce makes the nonce of an attempt of a random number. Scarce tells whether it holds a slot of a limit with few to spare.
func Nonce(random uint64, scarce bool) uint64 {
	if scarce {
		return random | nonceScarce
	}
	return random &^ nonceScarce
}

// Scarce tells whether the attempt of this nonce may hold a slot that others wait for. It is a
// hint: releases before Nonce set that bit at random.
func Scarce(nonce uint64) bool { return nonce&nonceScarce != 0 }

const (
	tokenBytes = 20
	checkBytes = 8
	// TokenChars is the length of a printed token: the token and its check.
	TokenChars = 45
)

// TokenSecretBytes is the size of the secret that tokens are checked with.
const TokenSecretBytes = 16

// ErrForgedToken says that a token was not printed for this task by this cluster.
var ErrForgedToken = errors.New("the token is not of this task")

// Tokens prints tokens with a check that only the cluster's secret makes, and reads
// them back, so that what a token says may be relied on as far as it was once said
// by the engine itself. Whether it still holds is history's to decide. It is safe
// for concurrent use.
type Tokens struct {
	secret [TokenSecretBytes]byte
	block  cipher.Block
	// scratch spares each check an allocation: what goes through the interface of
	// block is moved to the heap.
	scratch sync.Pool
}

// NewTokens makes the tokens of the cluster that has this secret.
func NewTokens(secret [TokenSecretBytes]byte) *Tokens {
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		panic("ids: " + err.Error()) // the size of a key is right by its type
	}
	return &Tokens{secret: secret, block: block, scratch: sync.Pool{New: func() any { return new([aes.BlockSize]byte) }}}
}

// Print prints the token of an attempt of task id.
func (k *Tokens) Print(id TaskID, t Token) string {
	var raw [tokenBytes + checkBytes]byte
	binary.BigEndian.PutUint64(raw[0:], uint64(t.Position))
	binary.BigEndian.PutUint32(raw[8:], t.Version)
	binary.BigEndian.PutUint64(raw[12:], t.Nonce)
	check := k.check(id, (*[tokenBytes]byte)(raw[:]))
	copy(raw[tokenBytes:], check[:])
	var b [TokenChars]byte
	encoding.Encode(b[:], raw[:])
	return string(b[:])
}

// Read reads a token that is presented for task id. Its error is ErrForgedToken
// where the form is right and the check is not.
func (k *Tokens) Read(id TaskID, s string) (Token, error) {
	if len(s) != TokenChars {
		return Token{}, fmt.Errorf("an attempt token has %d characters, not %d", TokenChars, len(s))
	}
	var raw [tokenBytes + checkBytes]byte
	if !decode(raw[:], s) {
		return Token{}, fmt.Errorf("%q is not an attempt token", s)
	}
	check := k.check(id, (*[tokenBytes]byte)(raw[:]))
	if subtle.ConstantTimeCompare(check[:], raw[tokenBytes:]) == 0 {
		return Token{}, ErrForgedToken
	}
	return Token{
		Position: Position(binary.BigEndian.Uint64(raw[0:])),
		Version:  binary.BigEndian.Uint32(raw[8:]),
		Nonce:    binary.BigEndian.Uint64(raw[12:]),
	}, nil
}

// check is the first half of the CBC-MAC with AES-128 of 48 bytes: the task's id,
// the token, zeros. CBC-MAC is sound because the input has always this length; with
// inputs of several lengths, checks of short ones could be joined to one of a longer.
func (k *Tokens) check(id TaskID, token *[tokenBytes]byte) (check [checkBytes]byte) {
	mac := k.scratch.Get().(*[aes.BlockSize]byte)
	*mac = id
	k.block.Encrypt(mac[:], mac[:])
	subtle.XORBytes(mac[:], mac[:], token[:aes.BlockSize])
	k.block.Encrypt(mac[:], mac[:])
	subtle.XORBytes(mac[:], mac[:], token[aes.BlockSize:]) // the zeros change nothing
	k.block.Encrypt(mac[:], mac[:])
	copy(check[:], mac[:])
	k.scratch.Put(mac)
	return check
}

// SealBytes is the size of a seal.
const SealBytes = 16

// sealLabel keeps seals apart from whatever else the secret may check some day.
const sealLabel = "yardmaster seal\x00"

// Seal is the check of what a client of a domain keeps for the engine and brings back: only
// the cluster's secret makes it, and it holds in that domain alone.
func (k *Tokens) Seal(domain string, data []byte) (seal [SealBytes]byte) {
	mac := hmac.New(sha256.New, k.secret[:])
	_, _ = mac.Write([]byte(sealLabel + domain + "\x00")) // a hash never fails; no name holds a 0
	_, _ = mac.Write(data)
	copy(seal[:], mac.Sum(nil))
	return seal
}
