package topology

import (
	"crypto/sha256"
	"encoding/binary"
)

const scheduleHomePart = ".schedule."

// SchedulesMax is how many schedules a domain may have in one home partition.
const SchedulesMax = 250

// ScheduleHome is where the log of partition p, the home of a schedule, has the schedule itself: only the last message counts.
func ScheduleHome(p int, domain, name string) string {
	return "yard.history." + num(p) + scheduleHomePart + domain + "." + name
}

// ScheduleHomesOf filters the schedules of a domain whose home is partition p.
func ScheduleHomesOf(p int, domain string) string {
	return "yard.history." + num(p) + scheduleHomePart + domain + ".*"
}

// ScheduleHomeAny filters all schedules whose home is partition p.
func ScheduleHomeAny(p int) string { return "yard.history." + num(p) + scheduleHomePart + ">" }

// DomainOfScheduleHome is the domain of a subject of ScheduleHome, or "".
func DomainOfScheduleHome(p int, subject string) string {
	return firstBehind(subject, "yard.history."+num(p)+scheduleHomePart)
}

// SchedulePartition is the home of a schedule.
func SchedulePartition(domain, name string, n Partitioning) int {
	digest := sha256.Sum256([]byte(domain + "." + name))
	return int(binary.BigEndian.Uint64(digest[:]) % uint64(n.History))
}
