package console

import (
	"net/http"
	"strings"

	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/pages"
)

// protect adds what every answer has, and refuses requests that other sites make a browser send.
//
// A console without a login trusts what reaches this machine. A site could point a name of its own to it, so the request has to name this machine.
func protect(next http.Handler, open bool) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, nonce := pages.WithNonce(r)
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if open && !loopback(r.Host) {
			http.Error(w, "this console has no login, and answers only requests to this machine by its own name, such as localhost", http.StatusForbidden)
			return
		}
		if foreign(r) {
			http.Error(w, "another site may link to this console, and may not load anything of it", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, bodyBytes)
		next.ServeHTTP(w, r)
	})
}

// foreign reports whether a browser says that a page of another site asks. Such a page may lead the browser here as a whole, by a link; the streams are not for that.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	link := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !link || strings.HasPrefix(r.URL.Path, "/live/")
}
