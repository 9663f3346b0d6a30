// Package overflow is the policies of limits that are full: the tasks that wait for their slots are rejected, or their oldest attempts make room.
//
// Owns: which limits are to act, and the question to history that is under way about a domain. It finds out which columns wait for which limit,
// and since when; a policy acts once the limit has been full for as long as a trigger is to wait, as each call about it has said. Never does:
// decide: history does. It never acts while it is not known which attempts run, and on no trigger that waits for something else. On failure:
// nothing can fail; what a silent partition does not answer is asked again later.
//
// Tasks that are to be rejected come out of the tables without slots, oldest first. A task that has not waited for long enough goes back.
package overflow
