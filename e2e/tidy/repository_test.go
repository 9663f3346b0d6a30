//go:build !race

// The race detector finds nothing in a program with one goroutine, and reading the repository under it takes a minute.

package tidy

import "testing"

func TestTidy(t *testing.T) {
	tree := parse(t, readRepository(t))
	for name, check := range rules() {
		t.Run(name, func(t *testing.T) {
			for _, finding := range check(tree) {
				t.Error(finding)
			}
		})
	}
}
