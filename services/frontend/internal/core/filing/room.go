package filing

const (
	// RoomTasksFirst and RoomBytesFirst are the room of a partition before its owner has reported.
	RoomTasksFirst = 1000
	RoomBytesFirst = 1 << 20
)

// Room is how much a partition still takes in messages of its most urgent lane that hold tasks of any
// priority. Its owner reports it several times a second, and each frontend spends it by itself: that
// all of them together may spend more is harmless, since the owner's window bounds what it reads.
type Room struct{ tasks, bytes int64 }

// NewRoom is the room of a partition of which nothing is known.
func NewRoom() Room { return Room{RoomTasksFirst, RoomBytesFirst} }

// Report takes in what the owner says: that is left now. What is negative counts as 0.
func (r *Room) Report(tasks, bytes int64) { r.tasks, r.bytes = max(tasks, 0), max(bytes, 0) }

// take spends room for tasks of so many bytes, or returns false if there is not enough.
func (r *Room) take(tasks, bytes int) bool {
	if int64(tasks) > r.tasks || int64(bytes) > r.bytes {
		return false
	}
	r.tasks -= int64(tasks)
	r.bytes -= int64(bytes)
	return true
}
