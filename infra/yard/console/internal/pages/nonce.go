package pages

import (
	"context"
	"crypto/rand"
	"net/http"
)

type nonceKey struct{}

// WithNonce is a request whose page may run scripts with the nonce that is returned.
func WithNonce(r *http.Request) (*http.Request, string) {
	nonce := rand.Text()
	return r.WithContext(context.WithValue(r.Context(), nonceKey{}, nonce)), nonce
}

// Nonce is that of a request; "" = none.
func Nonce(r *http.Request) string {
	nonce, _ := r.Context().Value(nonceKey{}).(string)
	return nonce
}
