package documents

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// Block is a fenced block of a document.
type Block struct {
	// File is the document, from the repository's root; Line is the fence's.
	File string
	Line int
	// Language is what follows the fence, "" for a picture or what a program prints.
	Language string
	// Why is the reason why the block is not run, RunBy the test that runs it; both are "" where it is run here.
	Why, RunBy string
	// Text is without the fence's indent.
	Text string
}

// Place is where the block is: README.md:16.
func (b Block) Place() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

var (
	fence = regexp.MustCompile("^( *)```([a-z]*)$")
	mark  = regexp.MustCompile(`^ *<!-- (not run:|run by) (.*\S) -->$`)
)

// Read reads the blocks of a document.
func Read(root fs.FS, file string) ([]Block, error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	var open *Block
	indent := ""
	var marked []string
	for i, line := range strings.Split(string(text), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open != nil && m != nil && m[1] == indent && m[2] == "":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		case m != nil:
			open, indent = &Block{File: file, Line: i + 1, Language: m[2]}, m[1]
			if marked != nil && marked[1] == "run by" {
				open.RunBy = marked[2]
			} else if marked != nil {
				open.Why = marked[2]
			}
		}
		if found := mark.FindStringSubmatch(line); found != nil || strings.TrimSpace(line) != "" {
			marked = found
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block has no end", open.Place())
	}
	return blocks, nil
}

// Root is the repository, for a test whose folder is two below it.
func Root() fs.FS { return os.DirFS("../..") }
