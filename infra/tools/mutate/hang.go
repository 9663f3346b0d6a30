package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// spot is where a mutant is, and whether the boundary of a comparison was moved,
// which tells it from its negation.
type spot struct {
	File     string
	Line     int
	Column   int
	Boundary bool
}

func (m mutant) spot() spot {
	return spot{m.File, m.Line, m.Column, strings.HasSuffix(m.Type, "_BOUNDARY")}
}

// timedOut is in the output of a test binary that took longer than its -timeout.
var timedOut = []byte("panic: test timed out after ")

// noteHang adds the mutant in the working directory to a file; original is the
// directory of the same package without mutation.
//
// Gremlins counts the compilation into its time-out, and leaves a test that hangs
// running. So a test binary gets a time-out of its own, gremlins is informed that the mutant was killed, and the
// stand-in notes that it hung.
func noteHang(file, original string) error {
	s, err := mutated(original)
	if err != nil {
		return err
	}
	return note(file, s)
}

// mutated finds the mutant in the working directory.
func mutated(original string) (spot, error) {
	found, err := filepath.Glob("*.go")
	if err != nil {
		return spot{}, err
	}
	for _, name := range found {
		before, err := os.ReadFile(filepath.Join(original, name))
		if err != nil {
			return spot{}, err
		}
		after, err := os.ReadFile(name)
		if err != nil {
			return spot{}, err
		}
		if s, ok := difference(before, after); ok {
			s.File = name
			return s, nil
		}
	}
	return spot{}, errors.New("no code was mutated")
}

func note(file string, s spot) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	// One write per line: two stand-ins may append at once.
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// difference is the first token that differs; layout does not count, since
// gremlins prints what it mutates again.
func difference(before, after []byte) (spot, bool) {
	a, b := tokens(before), tokens(after)
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x.text != y.text {
			return spot{Line: x.at.Line, Column: x.at.Column, Boundary: x.text+"=" == y.text || x.text == y.text+"="}, true
		}
	}
	return spot{}, false
}

type word struct {
	text string
	at   token.Position
}

func tokens(src []byte) []word {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	var all []word
	for {
		pos, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return all
		case tok.IsLiteral():
			all = append(all, word{literal, fset.Position(pos)})
		default:
			all = append(all, word{tok.String(), fset.Position(pos)})
		}
	}
}

// readHangs reads the file that noteHang writes; there may be none.
func readHangs(file string) ([]spot, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []spot
	for line := range bytes.Lines(text) {
		var s spot
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// applyHangs marks the mutants that hung.
func applyHangs(mutants []mutant, hangs []spot) error {
	for _, h := range hangs {
		i := slices.IndexFunc(mutants, func(m mutant) bool { return m.spot() == h })
		if i < 0 {
			return fmt.Errorf("no mutant is known of the hang at %s:%d:%d", h.File, h.Line, h.Column)
		}
		mutants[i].Status = statusTimedOut
	}
	return nil
}
