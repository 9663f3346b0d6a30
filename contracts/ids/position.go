package ids

// Lane is which kind of submit subject a task lies on: its batch's highest
// priority 1..5 (1 is the most urgent), or Later where the whole batch is delayed.
type Lane uint8

// The lanes. A lane is a part of a subject, so the values are for ever.
const (
	LaneLater Lane = 0
	LaneFirst Lane = 1
	LaneLast  Lane = 5
	// Lanes is how many there are.
	Lanes = 6
)

// String is the lane's subject token.
func (l Lane) String() string {
	if l == LaneLater {
		return "later"
	}
	return "p" + string(rune('0'+l))
}

// Position says where in its partition's log a task was (last) submitted: the
// stream sequence and the lane. With it an owner can tell a task it has not
// read yet from one it has already forgotten.
type Position uint64

// NewPosition packs a stream sequence (below 2^56) and a lane.
func NewPosition(seq uint64, lane Lane) Position { return Position(seq<<8 | uint64(lane)) }

// Seq is the stream sequence.
func (p Position) Seq() uint64 { return uint64(p) >> 8 }

// Lane is the lane.
func (p Position) Lane() Lane { return Lane(p) }
