package program

import (
	"bytes"
	"log/slog"
)

// Bounds of standard error. Bytes.
const (
	// stderrBytesMax is how much of one attempt's is logged.
	stderrBytesMax = 64 << 10
	// lineBytesMax is how much of one line is.
	lineBytesMax = 4 << 10
)

// capture keeps the first max bytes that are written, and takes the rest without keeping it, so
// that a program that writes too much ends by itself.
type capture struct {
	max  int
	data []byte
	over bool
}

func (c *capture) Write(b []byte) (int, error) {
	room := c.max - len(c.data)
	c.data = append(c.data, b[:min(room, len(b))]...)
	c.over = c.over || len(b) > room
	return len(b), nil
}

// stderr logs what is written, a line each.
type stderr struct {
	log *slog.Logger
	// left is how much is still logged.
	left int
	// line is the begin of a line whose end was not written yet.
	line []byte
	// last is the last line that was not empty.
	last string
}

func (s *stderr) Write(b []byte) (int, error) {
	n := len(b)
	for {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		s.line = append(s.line, line[:min(len(line), lineBytesMax-len(s.line))]...)
		if !ended {
			return n, nil
		}
		s.flush()
		b = rest
	}
}

// flush logs the line so far.
func (s *stderr) flush() {
	line := string(bytes.TrimSpace(s.line))
	s.line = s.line[:0]
	if line == "" {
		return
	}
	s.last = line
	if s.left <= 0 {
		return
	}
	s.log.Info("output of the program", "output", line)
	if s.left -= len(line); s.left <= 0 {
		s.log.Warn("further output of the program is not logged", "bytes", stderrBytesMax)
	}
}
