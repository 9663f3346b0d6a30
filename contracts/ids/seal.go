package ids

import (
	"crypto/hmac"
	"crypto/sha256"
)

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
