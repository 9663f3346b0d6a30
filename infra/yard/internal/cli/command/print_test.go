package command

import (
	"bytes"
	"strings"
	"testing"
	"time"
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

func TestDurationsHaveDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"2w": 14 * 24 * time.Hour, "1w1d1h": 193 * time.Hour, "7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0d1ms": time.Millisecond, "90m": 90 * time.Minute, "0": 0, "-1s": -time.Second,
	} {
		if got, err := ParseDuration(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "7", "d", "1.5d", "2d3", "1h2d", "w", "1d1w", "1.5w", "20000w", "999999999999d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
