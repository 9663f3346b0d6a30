package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// wordsFile lists what is not written here, and what to write instead.
const wordsFile = "e2e/tidy/testdata/words.txt"

// prose are the endings of files that are read as a whole. Of Go files comments and strings are read.
var prose = []string{".md", ".proto", ".sh", ".yml", ".yaml", ".lua", ".mjs", ".ts", ".c", ".h"}

// linkPath is the path in a link of Markdown: it spells the name of a file.
var linkPath = regexp.MustCompile(`\]\([^)]*\)`)

// noSubject is the beginning of a sentence whose subject is a clause.
var noSubject = regexp.MustCompile(`(?:^\s*|// |[.:;] |- |\*\* )(?:What|Who|Whose|That) [a-z]+`)

// quoted are files whose words are somebody else's: a licence.
var quoted = []string{"infra/yard/internal/demo/images/README.md"}

// avoided is one word, or phrase, of wordsFile.
type avoided struct {
	match   *regexp.Regexp
	instead string
}

// plainWords: the repository is written in plain English, for readers whose first language is another.
func plainWords(t *tree) []string {
	words, findings := readWords(t)
	find := func(where, text string) {
		text = linkPath.ReplaceAllString(text, "")
		if found := noSubject.FindString(text); found != "" && !strings.Contains(text, "?") && !strings.Contains(where, "_test.go:") {
			findings = append(findings, fmt.Sprintf("%s: %q: begin the sentence with its subject", where, strings.TrimSpace(found)))
		}
		if !words.any.MatchString(text) {
			return
		}
		for _, w := range words.each {
			if found := w.match.FindString(text); found != "" {
				findings = append(findings, fmt.Sprintf("%s: %q: write: %s", where, found, w.instead))
			}
		}
	}
	for _, p := range t.paths {
		if slices.Contains(quoted, p) || !slices.Contains(prose, path.Ext(p)) {
			continue
		}
		n := 0
		for line := range strings.Lines(t.text[p]) {
			n++
			find(fmt.Sprintf("%s:%d", p, n), line)
		}
	}
	for _, f := range t.code {
		for at, text := range writtenIn(t, f) {
			find(at, text)
		}
	}
	slices.Sort(findings)
	return findings
}

// writtenIn are the comments and strings of a Go file, by line.
func writtenIn(t *tree, f *goFile) map[string]string {
	lines := map[string]string{}
	add := func(pos token.Pos, text string) {
		first := t.fset.Position(pos).Line
		for i, line := range strings.Split(text, "\n") {
			lines[fmt.Sprintf("%s:%d", f.path, first+i)] += line + "\n"
		}
	}
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			add(c.Pos(), c.Text)
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		// A string without a space is a name, not a text.
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
			add(lit.Pos(), lit.Value)
		}
		return true
	})
	return lines
}

// avoidedWords are all of wordsFile. Any matches where one of them does: a text is looked through once, not for each.
type avoidedWords struct {
	any  *regexp.Regexp
	each []avoided
}

// readWords reads wordsFile; a tree without it avoids none.
func readWords(t *tree) (words avoidedWords, findings []string) {
	n := 0
	all := []string{`\z.`} // matches nothing
	for line := range strings.Lines(t.text[wordsFile]) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		word, instead, ok := strings.Cut(line, " → ")
		match, err := regexp.Compile(`(?i)\b(` + word + `)\b`)
		if !ok || err != nil {
			findings = append(findings, fmt.Sprintf("%s:%d: %q is not `<regular expression> → <what to write>`", wordsFile, n, line))
			continue
		}
		words.each, all = append(words.each, avoided{match, instead}), append(all, word)
	}
	words.any = regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)\b`)
	return words, findings
}
