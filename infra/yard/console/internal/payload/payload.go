// Package payload makes text of the payload of a task.
//
// Owns: what a page shows of a payload: JSON with indents, binary data as hexadecimal, and the beginning of one that is long. Never does: more work than the
// text that is shown is long. On failure: a payload that is no JSON is shown as it is.
package payload

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// bytesShown is how much of a payload a page shows, bytes. One that is deeper than indentMax is shown as it is: each of its lines would be as long as it is deep.
const bytesShown, indentMax = 16 << 10, 64

// depth is how many brackets of a text are open at once, at most; those in strings count as well.
func depth(text []byte) (most int) {
	open := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			open++
			most = max(most, open)
		case ']', '}':
			open--
		}
	}
	return most
}

// Shown is a payload as a page shows it.
type Shown struct {
	Text string
	Size int
	// Binary: the text is hexadecimal. Cut: it is not all.
	Binary, Cut bool
}

// Of is a payload as text; nil if it is empty.
func Of(p *yardv1.Payload) *Shown {
	if p == nil || len(p.Data) == 0 {
		return nil
	}
	s := &Shown{Size: len(p.Data)}
	var pretty bytes.Buffer
	switch {
	case p.Encoding == yardv1.Encoding_ENCODING_BINARY || !utf8.Valid(p.Data):
		s.Binary, s.Cut = true, len(p.Data) > bytesShown/4
		s.Text = hex.Dump(p.Data[:min(len(p.Data), bytesShown/4)])
		return s
	case len(p.Data) <= bytesShown && depth(p.Data) <= indentMax && json.Indent(&pretty, p.Data, "", "  ") == nil:
		s.Text = pretty.String()
	default:
		s.Text = string(p.Data)
	}
	if len(s.Text) > bytesShown {
		s.Text, s.Cut = strings.ToValidUTF8(s.Text[:bytesShown], ""), true
	}
	return s
}
