package columns

import (
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	words := strings.Repeat("word ", 60)
	got := Wrap(2, words)
	for i, line := range strings.Split(got, "\n") {
		if len(line) > Width || i > 0 && !strings.HasPrefix(line, "  word") {
			t.Errorf("line %d: %q", i, line)
		}
	}
	if strings.Join(strings.Fields(got), " ") != strings.TrimSpace(words) {
		t.Errorf("the words are others: %q", got)
	}
	if long := strings.Repeat("x", Width+1); Wrap(2, "a "+long) != "a\n  "+long {
		t.Error("a word that is too long is not on a line of its own")
	}
}
