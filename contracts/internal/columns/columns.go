// Package columns breaks texts of generated documents into lines.
//
// Owns: Wrap. Never does: look at Markdown; a word is what has no blank in it. On failure: nothing can fail; a word
// that is too long has a line of its own.
package columns

import "strings"

// Width is that of documents.
const Width = 120

// Wrap breaks a text into lines of at most Width characters, the further ones indented.
func Wrap(indent int, text string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case width == 0:
		case width+1+n > Width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			width = indent
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String()
}
