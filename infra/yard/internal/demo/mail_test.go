package demo

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestMailsAsSent(t *testing.T) {
	m, err := newMailer()
	testkit.NoError(t, err)
	zoe := customer{Name: "Zoë O'Brien <3", Email: "zoe@example.com"}
	anOrder := order{
		Number: "A&1", Customer: zoe, ShippingCents: 490, PlacedAt: time.Date(2026, 3, 9, 8, 0, 0, 0, time.UTC),
		Lines: []line{{product{"Teapot <“Nordlys”>, 1.2 l", 4990}, 2}, {product{"Bicycle bell", 890}, 1}},
	}
	for name, data := range map[string]any{
		"receipt":    anOrder,
		"followup":   anOrder,
		"reset":      passwordReset{Customer: zoe, Code: "012345", Minutes: 15},
		"newsletter": newsletter{Customer: zoe, Issue: 7, Offers: products()[:2]},
	} {
		t.Run(name, func(t *testing.T) {
			sent, err := m.write(envelope{
				id: "0123456789ABCDEFGHJKMNPQRS", to: zoe, subject: "Grüße", date: time.Date(2026, 3, 9, 8, 0, 1, 0, time.UTC),
			}, name, data)
			testkit.NoError(t, err)
			testkit.Golden(t, "testdata/"+name+".eml", bytes.ReplaceAll(sent, []byte("\r\n"), []byte("\n")))
			header, text, html := read(t, sent)
			if to, err := mail.ParseAddress(header.Get("To")); err != nil || to.Name != zoe.Name || to.Address != zoe.Email {
				t.Errorf("to %v %v", to, err)
			}
			if subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject")); err != nil || subject != "Grüße" {
				t.Errorf("subject %q %v", subject, err)
			}
			if !strings.Contains(text, "Hello Zoë O'Brien <3,") {
				t.Errorf("the text changed the name:\n%s", text)
			}
			if !strings.Contains(html, "Zoë O&#39;Brien &lt;3") {
				t.Errorf("the HTML does not escape the name:\n%s", html)
			}
		})
	}
}

// read takes a message apart as a mail program does.
func read(t *testing.T, message []byte) (header mail.Header, text, html string) {
	t.Helper()
	msg, err := mail.ReadMessage(bytes.NewReader(message))
	testkit.NoError(t, err)
	_, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	testkit.NoError(t, err)
	parts := multipart.NewReader(msg.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return msg.Header, text, html
		}
		testkit.NoError(t, err)
		content, err := io.ReadAll(quotedprintable.NewReader(part))
		testkit.NoError(t, err)
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			html = string(content)
		} else {
			text = string(content)
		}
	}
}

func TestOrderTotal(t *testing.T) {
	o := order{ShippingCents: 490, Lines: []line{{product{"a", 100}, 3}, {product{"b", 50}, 1}}}
	testkit.Equal(t, "the total", o.Total(), 840)
}
