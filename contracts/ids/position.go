package ids

// Lane is which kind of submit subject a task lies on: its batch's highest
// priority 1..5 (1 is the most urgent), Later where the whole batch is delayed, or Keyed where its tasks have order keys.
type Lane uint8

// The lanes. A lane is a part of a subject, so the values are forever.
const (
	LaneLater Lane = 0
	LaneFirst Lane = 1
	LaneLast  Lane = 5
	LaneKeyed Lane = 6
	// Lanes is how many there are.
	Lanes = 7
)

// String is the lane's subject token.
func (l Lane) String() string {
	switch l {
	case LaneLater:
		return "later"
	case LaneKeyed:
		return "keyed"
	}
	return "p" + string(rune('0'+l))
}

// Position says where in its partition's log a task was (last) submitted: the
// stream sequence and the lane. With it an owner can tell a task it has not
// read yet from one it has already forgotten.
//
// It may also say that the task lies in a message that domains share, or tasklists of one domain. Not everyone who names
// a position knows that, so positions are compared by Same.
type Position uint64

// positionShared is set in the positions of tasks in messages that domains share, positionMixed in those of one domain and
// several tasklists.
const (
	positionShared = 1 << 7
	positionMixed  = 1 << 6
	positionNotes  = positionShared | positionMixed
)

// NewPosition packs a stream sequence (below 2^56) and a lane.
func NewPosition(seq uint64, lane Lane) Position { return Position(seq<<8 | uint64(lane)) }

// Seq is the stream sequence.
func (p Position) Seq() uint64 { return uint64(p) >> 8 }

// Lane is the lane.
func (p Position) Lane() Lane { return Lane(p) &^ positionNotes }

// InShared is p in a message that domains share.
func (p Position) InShared() Position { return p | positionShared }

// InMixed is p in a message of several tasklists of one domain.
func (p Position) InMixed() Position { return p | positionMixed }

// Same tells whether p and o are one position, whatever they say of its message.
func (p Position) Same(o Position) bool { return (p^o)&^positionNotes == 0 }

// Shared tells whether p is known to be in a message that domains share.
func (p Position) Shared() bool { return p&positionShared != 0 }

// Mixed tells whether p is known to be in a message of several tasklists of one domain.
func (p Position) Mixed() bool { return p&positionMixed != 0 }
