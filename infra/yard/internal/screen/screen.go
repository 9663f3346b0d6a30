// Package screen shows frames on a terminal, and hears the key that ends them.
//
// Owns: the control sequences of terminals, the size of a frame, the mode of the keyboard. Never does: decide what a frame shows.
//
// On failure: what cannot be written is lost, since who reads it has gone away; the next frame is written all the same.
package screen

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Control sequences of ANSI terminals. Frames have the alternate screen, so what was there before comes back when they end.
const (
	seqEnter     = "\x1b[?1049h\x1b[?25l" // alternate screen, no cursor
	seqLeave     = "\x1b[?25h\x1b[?1049l"
	seqHome      = "\x1b[H"
	seqClearLine = "\x1b[K"
	seqClearDown = "\x1b[J"
	seqBold      = "\x1b[1m"
	seqPlain     = "\x1b[0m"
)

// Line is one line of a frame.
type Line struct {
	Text    string
	Heading bool
}

// Screen is a terminal on which frames are shown.
type Screen struct{ out *os.File }

// Of is the terminal that frames can be shown on, or nil.
func Of(out io.Writer) *Screen {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &Screen{f}
}

// Open begins the frames. Leave ends them.
func (s *Screen) Open() (leave func()) {
	s.write(seqEnter)
	return func() { s.write(seqLeave) }
}

// Show replaces the frame. The size is asked at every frame, so that a resized window is right within one.
func (s *Screen) Show(frame func(width, height int) []Line) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	s.write(Render(frame(width, height)))
}

func (s *Screen) write(text string) { _, _ = io.WriteString(s.out, text) }

// Render is what replaces the frame in one write, without clearing first, so that nothing flickers.
func Render(lines []Line) string {
	var b strings.Builder
	b.WriteString(seqHome)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if l.Heading {
			b.WriteString(seqBold + l.Text + seqPlain)
		} else {
			b.WriteString(l.Text)
		}
		b.WriteString(seqClearLine)
	}
	b.WriteString(seqClearDown)
	return b.String()
}

// Fit cuts lines off at the bottom and at the right. Each character is one column wide.
func Fit(lines []Line, width, height int) []Line {
	lines = lines[:min(len(lines), max(height, 0))]
	for i := range lines {
		if text := lines[i].Text; utf8.RuneCountInString(text) > width {
			lines[i].Text = string([]rune(text)[:max(width, 0)])
		}
	}
	return lines
}

// ctrlC is what the keyboard sends for Ctrl-C while keys are heard.
const ctrlC = 3

// Quit is closed when q or Ctrl-C is pressed, if in is a terminal. Restore brings the mode of the keyboard back. A goroutine reads the keys until the next one,
// or until the process ends.
func Quit(in io.Reader) (quit <-chan struct{}, restore func(), err error) {
	pressed := make(chan struct{})
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return pressed, func() {}, nil
	}
	mode, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, nil, err
	}
	go await(f, pressed)
	return pressed, func() { _ = term.Restore(int(f.Fd()), mode) }, nil
}

// await closes pressed when a key that ends the frames is read.
func await(in io.Reader, pressed chan<- struct{}) {
	key := make([]byte, 1)
	for {
		if _, err := io.ReadFull(in, key); err != nil {
			return
		}
		if key[0] == 'q' || key[0] == 'Q' || key[0] == ctrlC {
			close(pressed)
			return
		}
	}
}
