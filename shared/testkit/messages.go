package testkit

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Message is a message of a stream, or an entry of a bucket, as it was stored.
type Message struct {
	Subject string
	Seq     uint64
	// At is when it was stored, Unix ms.
	At   int64
	Data []byte
}

// noData stands for an empty message.
const noData = "-"

// ReadMessages reads what WriteMessages has written.
func ReadMessages(tb testing.TB, path string) (all []Message) {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("recorded messages: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		var m Message
		var data string
		if _, err := fmt.Sscan(line, &m.Seq, &m.At, &m.Subject, &data); err != nil {
			tb.Fatalf("%s: %q: %v", path, line, err)
		}
		if m.Data, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(data, noData)); err != nil {
			tb.Fatalf("%s: %q: %v", path, line, err)
		}
		all = append(all, m)
	}
	return all
}

// WriteMessages writes a new file of messages, one per line: sequence, time, subject and the
// bytes in base64. It never replaces one: what was recorded is kept.
func WriteMessages(tb testing.TB, path string, all []Message) {
	tb.Helper()
	var text strings.Builder
	for _, m := range all {
		fmt.Fprintln(&text, m.Seq, m.At, m.Subject, cmp.Or(base64.StdEncoding.EncodeToString(m.Data), noData))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := f.WriteString(text.String()); err != nil {
		tb.Error(err)
	}
	if err := f.Close(); err != nil {
		tb.Error(err)
	}
}
