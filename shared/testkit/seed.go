package testkit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// SeedEnv names the environment variable that replays a random test.
const SeedEnv = "YARD_SEED"

// Seed returns the test's source of randomness. Its seed is taken from YARD_SEED,
// or fresh, and is logged, so a failed run prints how to repeat it. The source is
// not safe for concurrent use.
func Seed(tb testing.TB) *rand.Rand {
	tb.Helper()
	seed := rand.Uint64()
	if s := os.Getenv(SeedEnv); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			tb.Fatalf("%s: %v", SeedEnv, err)
		}
	}
	tb.Logf("%s=%d", SeedEnv, seed)
	return rand.New(rand.NewPCG(seed, 0))
}
