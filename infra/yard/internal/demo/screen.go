package demo

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Control sequences of ANSI terminals. The view has the alternate screen, so what
// was there before comes back when it ends.
const (
	seqEnter     = "\x1b[?1049h\x1b[?25l" // alternate screen, no cursor
	seqLeave     = "\x1b[?25h\x1b[?1049l"
	seqHome      = "\x1b[H"
	seqClearLine = "\x1b[K"
	seqClearDown = "\x1b[J"
	seqBold      = "\x1b[1m"
	seqPlain     = "\x1b[0m"
)

// The size taken where the terminal does not tell.
const (
	widthDefault  = 80
	heightDefault = 24
)

// isTerminal tells whether the live view can be shown on out.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// screen draws on a terminal. Errors of writing are dropped: a terminal that has
// gone away does not stop the demo.
type screen struct{ out io.Writer }

func openScreen(out io.Writer) *screen {
	s := &screen{out: out}
	s.write(seqEnter)
	return s
}

// close gives the terminal back as it was.
func (s *screen) close() { s.write(seqLeave) }

// size asks at every frame, so that a resized window is right within one.
func (s *screen) size() (width, height int) {
	if f, ok := s.out.(*os.File); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return widthDefault, heightDefault
}

// draw replaces the frame in one write, without clearing first, so that nothing
// flickers.
func (s *screen) draw(lines []viewLine) {
	var b strings.Builder
	b.WriteString(seqHome)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if l.heading {
			b.WriteString(seqBold + l.text + seqPlain)
		} else {
			b.WriteString(l.text)
		}
		b.WriteString(seqClearLine)
	}
	b.WriteString(seqClearDown)
	s.write(b.String())
}

func (s *screen) write(text string) { _, _ = io.WriteString(s.out, text) }
