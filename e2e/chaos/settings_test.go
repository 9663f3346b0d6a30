package chaos_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/chaos/audit"
)

// The long form of the fault runs is set by these environment variables; `task
// chaos` sets the first. YARD_SEED replays the plan of one round.
const (
	// roundsEnv is how many rounds each fault run has, each on a cluster of its own.
	// Default 0: the short form, one round.
	roundsEnv = "YARD_CHAOS_ROUNDS"
	// lastsEnv is how long the faults of one round go on. Default 90s.
	lastsEnv = "YARD_CHAOS_LASTS"
	// rateEnv is how many tasks are submitted per second. Default 1000, in the short
	// form 200.
	rateEnv = "YARD_CHAOS_RATE"
)

const (
	shortLasts, longLasts = 14 * time.Second, 90 * time.Second
	shortRate, longRate   = 200, 1000
	// How long an attempt may take, of all types: one whose outcome does not reach the
	// log by then is over. It is about as long as a pause at least, so that a resumed
	// owner finds attempts whose time is over (R24).
	shortAttempt, longAttempt = 4 * time.Second, 6 * time.Second
)

// settings of a fault run.
type settings struct {
	long   bool
	rounds int
	lasts  time.Duration
	rate   int // tasks per second
	// attempt is start_to_close of all types.
	attempt time.Duration
	// fullLimit: attempts of the limited type run so long that its limit is full most of the time.
	fullLimit bool
	// passOver are rules whose violations are in the table and fail nothing. The short forms with
	// faults pass over attempts that no worker held (R41): matching is granted an attempt and its
	// worker never gets it. Until matching hands such attempts back in time, they count. The
	// long forms fail. Outcomes that were sent in time count where NATS nodes are paused: what a killed
	// process takes along is repeated after 4 s, which may be too late.
	passOver []audit.Kind
}

// settingsOf reads the environment.
func settingsOf(t *testing.T) settings {
	t.Helper()
	s := settings{rounds: number(t, roundsEnv, 0), lasts: shortLasts, attempt: shortAttempt, passOver: []audit.Kind{audit.BurnedInTime}}
	if s.rounds == 0 {
		s.rounds, s.rate = 1, number(t, rateEnv, shortRate)
		return s
	}
	s.long, s.lasts, s.attempt, s.rate = true, longLasts, longAttempt, number(t, rateEnv, longRate)
	if text := os.Getenv(lastsEnv); text != "" {
		var err error
		if s.lasts, err = time.ParseDuration(text); err != nil || s.lasts < shortLasts {
			t.Fatalf("%s=%q: want a duration of at least %v", lastsEnv, text, shortLasts)
		}
	}
	return s
}

// number reads a whole number that is not negative.
func number(t *testing.T, env string, standard int) int {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q: want a whole number", env, text)
	}
	return n
}
