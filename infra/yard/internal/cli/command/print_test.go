package command

import (
	"bytes"
	"strings"
	"testing"
)

// I14: what a worker or a submitter wrote neither steers the terminal of who looks at it, nor looks like another row.
func TestI14_WhatOthersWroteIsTextOnly(t *testing.T) {
	const evil = "a\x1b[2Jb\u009b0mc\u202ed\x7f\r\ne\rf\tg"
	var out bytes.Buffer
	a := &App{Streams: Streams{Out: &out}, Wide: true}
	err := a.Show(nil, func(t *Table) {
		t.Row("A", evil, Wide{evil})
		t.Some(evil, evil)
	})
	if text := out.String(); err != nil || strings.ContainsAny(text, "\x1b\u009b\u202e\x7f\r\t") || strings.Count(text, "\n") != 2 || strings.Count(text, "b") != 4 {
		t.Errorf("%v: %q", err, text)
	}
}
