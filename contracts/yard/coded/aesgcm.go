package coded

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// keyBytes is the length of a key: AES-256.
const keyBytes = 32

type aesGCM struct {
	current string
	keys    map[string]cipher.AEAD
}

// AESGCM encrypts with AES-256-GCM (NIST SP 800-38D) and a random nonce of 96 bits. Keys are by name, 1 to 64 bytes; the current one encrypts, all of
// them decrypt. The name of the key travels with the content, so keys are rotated by a new current one: an old key must stay until the last
// task that it has encrypted is out of the archive. One key is good for 4 billion payloads.
func AESGCM(current string, keys map[string][]byte) (Codec, error) {
	c := &aesGCM{current: current, keys: make(map[string]cipher.AEAD, len(keys))}
	for name, key := range keys {
		if name == "" || len(name) > 64 {
			return nil, fmt.Errorf("the name of a key has 1 to 64 bytes, not %d", len(name))
		}
		if len(key) != keyBytes {
			return nil, fmt.Errorf("key %q has %d bytes: want %d", name, len(key), keyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if c.keys[name], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
	}
	if c.keys[current] == nil {
		return nil, fmt.Errorf("the current key %q is not among the keys", current)
	}
	return c, nil
}

// Encode returns the length and the name of the key, then nonce and ciphertext. The name is authenticated, too.
func (c *aesGCM) Encode(data []byte) ([]byte, error) {
	head := append([]byte{byte(len(c.current))}, c.current...)
	return c.keys[c.current].Seal(head, nil, data, head), nil
}

func (c *aesGCM) Decode(data []byte) ([]byte, error) {
	if len(data) == 0 || len(data) <= int(data[0]) {
		return nil, errTooShort
	}
	head := data[:1+int(data[0])]
	name := string(head[1:])
	key := c.keys[name]
	if key == nil {
		return nil, fmt.Errorf("the content is encrypted with key %q, which is not among the keys", name)
	}
	plain, err := key.Open(nil, nil, data[len(head):], head)
	if err != nil {
		return nil, fmt.Errorf("key %q does not open the content: another key has this name, or the content was changed", name)
	}
	return plain, nil
}
