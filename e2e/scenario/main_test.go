package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// within bounds what must happen soon; a healthy run needs milliseconds, on a loaded machine
// seconds.
const within = 90 * time.Second

// shared are the stacks that the scenarios share. It is the one value per process,
// since the testing package is itself per process; TestMain sets and closes it.
var shared *stacks

// TestMain runs more scenarios side by side than there are cores: most of the time
// they wait for something to be due.
func TestMain(m *testing.M) {
	testkit.SideBySide(4)
	natskit.VerifyTestMain(suite{m})
}

// suite runs the tests between the start and the end of the shared stacks.
type suite struct{ tests *testing.M }

func (s suite) Run() int {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var err error
	if shared, err = startStacks(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "the stacks did not start:", err)
		return 1
	}
	code := s.tests.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "the stacks did not end well:", err)
		return max(code, 1)
	}
	return code
}

// stacks are running systems, by where their tables are.
type stacks struct {
	of map[stack.Tables]*stack.Stack
	// users is the folder of those of the shared stacks; refused is what servers refused.
	users   string
	refused *sealed.Log

	mu sync.Mutex
	// given counts the domains given out of each stack; rendered, those that have users in the
	// shared folder.
	given    map[*stack.Stack]int
	rendered int
}

// domainsAtOnce is how many domains get users at a time.
const domainsAtOnce = 200

// ownDomains is how many have users on a stack of one test.
const ownDomains = 4

// unknownDomain is a domain that has users and was never made.
const unknownDomain = "nobody-made-it"

func domainName(i int) string { return fmt.Sprintf("d%d", i+1) }

func domainNames(n int) []string {
	all := []string{unknownDomain}
	for i := range n {
		all = append(all, domainName(i))
	}
	return all
}

// domain is the name of one that was not given out yet, and has users.
func (s *stacks) domain(t *testing.T, of *stack.Stack) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.given[of]
	s.given[of]++
	if of.Auth == s.users && i >= s.rendered {
		testkit.NoError(t, s.render())
		for _, one := range s.of {
			testkit.NoError(t, one.Reload())
		}
	}
	return domainName(i)
}

// render makes the users of further domains of the shared stacks.
func (s *stacks) render() error {
	s.rendered += domainsAtOnce
	return sealed.Render(s.users, topology.Partitioning{}, domainNames(s.rendered))
}

// kinds are the places for tables that the tests run with.
func kinds() ([]stack.Tables, error) {
	all := []stack.Tables{stack.TablesMemory}
	if testkit.Quick() {
		return all, nil
	}
	_, err := exec.LookPath("redis-server")
	return append(all, stack.TablesRedis), err
}

func startStacks(ctx context.Context) (*stacks, error) {
	tables, err := kinds()
	if err != nil {
		return nil, err
	}
	all := &stacks{of: map[stack.Tables]*stack.Stack{}, given: map[*stack.Stack]int{}, refused: new(sealed.Log)}
	if all.users, err = os.MkdirTemp("", "yard-users-"); err != nil {
		return nil, err
	}
	if err := all.render(); err != nil {
		return nil, err
	}
	for _, kind := range tables {
		s, err := stack.Start(ctx, stack.Config{Tables: kind, Auth: all.users, Log: all.refused.Logger()})
		if err != nil {
			_ = all.close() // the start's error is the one to tell
			return nil, fmt.Errorf("tables in %s: %w", kind, err)
		}
		all.of[kind] = s
	}
	return all, nil
}

// close ends the stacks. What a server refused its users is a failure too: the permissions are
// to be all that is needed.
func (s *stacks) close() error {
	failed := errors.Join(os.RemoveAll(s.users), s.refused.Refused())
	for kind, one := range s.of {
		if err := closeStack(one); err != nil {
			failed = errors.Join(failed, fmt.Errorf("tables in %s: %w", kind, err))
		}
	}
	return failed
}

func closeStack(s *stack.Stack) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return s.Close(ctx)
}

// everywhere runs a scenario on each kind of stack, beside all others.
func everywhere(t *testing.T, scenario func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	for kind, s := range shared.of {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			scenario(t, enter(t, s))
		})
	}
}

// eachKind runs a scenario that has stacks of its own, beside all others, with each place for tables.
func eachKind(t *testing.T, scenario func(t *testing.T, kind stack.Tables)) {
	t.Helper()
	t.Parallel()
	for kind := range shared.of {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			scenario(t, kind)
		})
	}
}

// own starts a stack for one test, with settings that the shared ones do not have.
func own(t *testing.T, cfg stack.Config) *stack.Stack {
	t.Helper()
	return ownOf(t, cfg, ownDomains)
}

// ownOf is own for so many domains.
func ownOf(t *testing.T, cfg stack.Config, domains int) *stack.Stack {
	t.Helper()
	cfg.Auth, cfg.Log = t.TempDir(), shared.refused.Logger()
	testkit.NoError(t, sealed.Render(cfg.Auth, cfg.Partitioning, domainNames(domains)))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var s *stack.Stack
	// Again where it does not come up, as a supervisor does: its steps have limits, which a busy machine may pass.
	testkit.Eventually(t, within, func() (err error) {
		s, err = stack.Start(ctx, cfg)
		return err
	})
	t.Cleanup(func() {
		testkit.Check(t, closeStack(s))
	})
	return s
}
