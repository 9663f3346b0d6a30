package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What is planted into each package before it is mutated.
const (
	plantFile     = "planted.go"
	plantTestFile = "planted_test.go"
)

// plants are functions whose mutants end in a known way.
const plants = `package %s

const plantedConstant = 6 * 7

func plantedKill(n int) bool { return n > 41 }

func plantedSurvivor(n int) bool { return n > 41 }

func plantedGap(n int) bool { return n > 41 }

func plantedNonsense(s string) string { return s + s }

func plantedCase(n int) bool {
	switch {
	case n > 41:
		return true
	}
	return false
}
`

// plantTests call the survivor without looking at what it returns, do not know
// the gap, and see all else. Of the nonsense, no mutant compiles.
const plantTests = `package %s

import "testing"

func TestPlanted(t *testing.T) {
	if plantedConstant != 42 || plantedNonsense("a") != "aa" {
		t.Error("a planted mutant of a value")
	}
	if plantedKill(41) || !plantedKill(42) || plantedCase(41) || !plantedCase(42) {
		t.Error("a planted mutant of a condition")
	}
	_ = plantedSurvivor(42)
}
`

// plantedFates are the status of the mutants of each planted line.
var plantedFates = map[int]string{
	3: statusKilled, 5: statusKilled, 7: statusLived, 9: statusNotCovered, 11: statusNotViable, 15: statusKilled,
}

// plantedMutants is how many mutants there are: two of each comparison, one of
// each product and sum.
const plantedMutants = 10

// plant writes the planted files into a package's directory.
func plant(dir, pkg string) error {
	for name, text := range map[string]string{plantFile: plants, plantTestFile: plantTests} {
		at := filepath.Join(dir, name)
		if _, err := os.Stat(at); err == nil {
			return fmt.Errorf("%s is there already", name)
		}
		if err := os.WriteFile(at, fmt.Appendf(nil, text, pkg), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// uproot removes them, so that they are no part of the package's numbers.
func uproot(dir string) error {
	return errors.Join(os.Remove(filepath.Join(dir, plantFile)), os.Remove(filepath.Join(dir, plantTestFile)))
}

// proven returns an error where the planted mutants did not end as they must:
// then nothing that this harness says about the package is worth reading.
func proven(planted []mutant) error {
	var wrong []string
	for _, m := range planted {
		if want := plantedFates[m.Line]; m.Status != want {
			wrong = append(wrong, fmt.Sprintf("%s:%d %s is %s, want %s", plantFile, m.Line, m.Type, m.Status, want))
		}
	}
	if len(planted) != plantedMutants {
		wrong = append(wrong, fmt.Sprintf("%d mutants, want %d", len(planted), plantedMutants))
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("the harness does not tell the truth about planted mutants: %s", strings.Join(wrong, "; "))
}
