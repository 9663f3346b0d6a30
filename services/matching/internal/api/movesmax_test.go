package api

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Polls that were given up are remembered until others have taken their places, whatever the size of the messages. A message is taken once.
func TestPollsThatWereGivenUpAreForgotten(t *testing.T) {
	m := moves{sent: map[uint64][]tree.Move{}}
	first := m.add(make([]tree.Move, movesMax/2))
	second := m.add(make([]tree.Move, movesMax/2))
	testkit.Equal(t, "polls of the second message", len(m.take(second)), movesMax/2)
	testkit.Equal(t, "polls of it again", len(m.take(second)), 0)
	third := m.add(make([]tree.Move, movesMax/2))
	fourth := m.add(make([]tree.Move, 1))
	testkit.Equal(t, "polls of the first message", len(m.take(first)), 0)
	testkit.Equal(t, "polls of the third message", len(m.take(third)), movesMax/2)
	testkit.Equal(t, "polls of the fourth message", len(m.take(fourth)), 1)
	large := m.add(make([]tree.Move, 2*movesMax))
	testkit.Equal(t, "polls of a large message", len(m.take(large)), 2*movesMax)
}
