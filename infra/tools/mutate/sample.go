package main

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
)

// sampleAll is a sample, in percent, that leaves nothing out.
const sampleAll = 100

// sampled tells whether a mutant is in a sample. It is the same each time, and a larger
// sample holds those of a smaller one.
func (s spot) sampled(percent int) bool {
	h := fnv.New64a()
	fmt.Fprint(h, s)
	return h.Sum64()>>32%sampleAll < uint64(percent)
}

// sample leaves out the mutants that are not in the sample.
func sample(mutants []mutant, percent int) []mutant {
	return slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !m.spot().sampled(percent) })
}

// leftOut tells a stand-in whether the mutant in the working directory is not in the sample.
func leftOut() (bool, error) {
	percent, err := strconv.Atoi(os.Getenv(sampleVariable))
	if err != nil {
		return false, fmt.Errorf("%s: %w", sampleVariable, err)
	}
	if percent >= sampleAll {
		return false, nil
	}
	s, err := mutated(os.Getenv(packageVariable))
	return err == nil && !s.sampled(percent), err
}
