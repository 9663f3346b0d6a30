package ids

import "encoding/binary"

// Trigger is the hint "task ID, version Version is ready": what matching needs
// to grab it. Triggers travel and are stored packed, many in one string.
type Trigger struct {
	ID       TaskID
	Version  uint32
	Position Position
}

// TriggerBytes is the size of one packed trigger.
const TriggerBytes = 28

// AppendTrigger packs t behind b.
func AppendTrigger(b []byte, t Trigger) []byte {
	b = append(b, t.ID[:]...)
	b = binary.BigEndian.AppendUint32(b, t.Version)
	return binary.BigEndian.AppendUint64(b, uint64(t.Position))
}

// TriggerAt unpacks the i-th trigger of b. It panics where there is none.
func TriggerAt(b []byte, i int) Trigger {
	b = b[i*TriggerBytes : (i+1)*TriggerBytes]
	return Trigger{
		ID:       TaskID(b[:16]),
		Version:  binary.BigEndian.Uint32(b[16:]),
		Position: Position(binary.BigEndian.Uint64(b[20:])),
	}
}

// BookingBytes is the size of a slot booking's member: task id and version,
// the first bytes of a packed trigger.
const BookingBytes = 20

// Booking names one attempt in the bookings of a limit.
func Booking(id TaskID, version uint32) string {
	var b [BookingBytes]byte
	copy(b[:], id[:])
	binary.BigEndian.PutUint32(b[16:], version)
	return string(b[:])
}
