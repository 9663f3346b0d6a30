package batch

import "unsafe"

// unsafeString is b as a string that shares its memory. The due table looks
// names up by it and copies those it keeps; millions of copies at each takeover
// would be garbage at once.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
