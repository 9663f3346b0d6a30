package demo

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	htmltemplate "html/template"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"text/template"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

//go:embed templates/*.txt templates/*.html
var templateFiles embed.FS

// The relay is not real: it takes this long for a message, and so much more for
// each of its bytes.
const (
	relayTakes        = 2 * time.Millisecond
	relayTakesPerByte = 500 * time.Nanosecond
)

// sentMessage is the result of an e-mail task.
type sentMessage struct {
	MessageID string `json:"message_id"`
	To        string `json:"to"`
	Subject   string `json:"subject"`
	Bytes     int    `json:"bytes"`
}

// mailer writes e-mails from templates. It is safe for concurrent use.
type mailer struct {
	text *template.Template
	html *htmltemplate.Template
}

func newMailer() (*mailer, error) {
	functions := map[string]any{"money": money}
	text, err := template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.txt")
	if err != nil {
		return nil, fmt.Errorf("e-mail templates: %w", err)
	}
	html, err := htmltemplate.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("e-mail templates: %w", err)
	}
	return &mailer{text: text, html: html}, nil
}

func money(cents int64) string { return fmt.Sprintf("€%d.%02d", cents/100, cents%100) }

// send writes a message and hands it to the relay. The message's id is the
// task's, so a repeated attempt sends what mail servers know as the same one.
func (m *mailer) send(ctx context.Context, name string, to customer, subject string, data any) (sentMessage, error) {
	attempt := yard.Info(ctx)
	msg, err := m.write(envelope{id: attempt.TaskID, to: to, subject: subject, date: attempt.CreatedAt}, name, data)
	if err != nil {
		return sentMessage{}, err
	}
	if !backoff.Sleep(ctx, relayTakes+time.Duration(len(msg))*relayTakesPerByte) {
		return sentMessage{}, context.Cause(ctx)
	}
	return sentMessage{MessageID: messageID(attempt.TaskID), To: to.Email, Subject: subject, Bytes: len(msg)}, nil
}

// envelope is what a message needs beside its content.
type envelope struct {
	id      string // [0-9A-Za-z]
	to      customer
	subject string
	date    time.Time
}

func messageID(id string) string { return "<" + id + "@shop.example>" }

// write makes a message (RFC 5322) with a plain and an HTML form of one content.
func (m *mailer) write(e envelope, name string, data any) ([]byte, error) {
	var msg bytes.Buffer
	parts := multipart.NewWriter(&msg)
	if err := parts.SetBoundary("part-" + e.id); err != nil {
		return nil, fmt.Errorf("message %s: %w", e.id, err)
	}
	header := [][2]string{
		{"From", (&mail.Address{Name: "The Shop", Address: "orders@shop.example"}).String()},
		{"To", (&mail.Address{Name: e.to.Name, Address: e.to.Email}).String()},
		{"Subject", mime.QEncoding.Encode("utf-8", e.subject)},
		{"Date", e.date.UTC().Format(time.RFC1123Z)},
		{"Message-ID", messageID(e.id)},
		{"MIME-Version", "1.0"},
		{"Content-Type", mime.FormatMediaType("multipart/alternative", map[string]string{"boundary": parts.Boundary()})},
	}
	for _, h := range header {
		fmt.Fprintf(&msg, "%s: %s\r\n", h[0], h[1])
	}
	msg.WriteString("\r\n")
	err := writePart(parts, "text/plain", func(w io.Writer) error { return m.text.ExecuteTemplate(w, name+".txt", data) })
	if err == nil {
		err = writePart(parts, "text/html", func(w io.Writer) error { return m.html.ExecuteTemplate(w, name+".html", data) })
	}
	if err == nil {
		err = parts.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("message %s from template %s: %w", e.id, name, err)
	}
	return msg.Bytes(), nil
}

func writePart(parts *multipart.Writer, mediaType string, content func(io.Writer) error) error {
	part, err := parts.CreatePart(textproto.MIMEHeader{
		"Content-Type":              {mediaType + "; charset=utf-8"},
		"Content-Transfer-Encoding": {"quoted-printable"},
	})
	if err != nil {
		return err
	}
	encoder := quotedprintable.NewWriter(part)
	if err := content(encoder); err != nil {
		return err
	}
	return encoder.Close()
}
