package screen

import (
	"bytes"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestAFrameReplacesTheLast(t *testing.T) {
	want := seqHome + seqBold + "title" + seqPlain + seqClearLine + "\r\n" + "body" + seqClearLine + seqClearDown
	testkit.Equal(t, "the frame", Render([]Line{{Text: "title", Heading: true}, {Text: "body"}}), want)
	if Of(&bytes.Buffer{}) != nil {
		t.Error("a buffer is no terminal")
	}
}

func TestAFrameFits(t *testing.T) {
	all := []Line{{Text: "▁▂▃"}, {Text: "b"}, {Text: "c"}}
	testkit.Equal(t, "the lines", Fit(all, 2, 2), []Line{{Text: "▁▂"}, {Text: "b"}})
	testkit.Equal(t, "without room", len(Fit(all, -1, -1)), 0)
}

// Only q and Ctrl-C end the frames; other keys do nothing, and neither does the end of the input.
func TestTheKeyThatEnds(t *testing.T) {
	for keys, want := range map[string]bool{"q": true, "xyQ": true, "\x03": true, "xyz": false, "": false} {
		pressed := make(chan struct{})
		await(strings.NewReader(keys), pressed)
		got := false
		select {
		case <-pressed:
			got = true
		default:
		}
		testkit.Equal(t, keys, got, want)
	}
	if _, restore, err := Quit(strings.NewReader("q")); err != nil {
		t.Error(err)
	} else {
		restore()
	}
}
