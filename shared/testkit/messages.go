package testkit

import (
	"encoding/base64"
	"fmt"
	"os"
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

// NoData stands for an empty message.
const NoData = "-"

// ReadMessages reads a file of messages, one per line: sequence, time, subject and the bytes in base64. TestI13EveryFieldIsWritten writes it.
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
		if m.Data, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(data, NoData)); err != nil {
			tb.Fatalf("%s: %q: %v", path, line, err)
		}
		all = append(all, m)
	}
	return all
}
