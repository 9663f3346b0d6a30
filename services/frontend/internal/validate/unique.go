package validate

import (
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// UniqueKeyBytesMax bounds a unique key.
const UniqueKeyBytesMax = 256

// uniqueKeys checks the unique keys of a request, whose tasks all have one, or none has.
func uniqueKeys(tasks []*yardv1.NewTask) error {
	unique := tasks[0].UniqueKey != ""
	type within struct{ orderKey, key string }
	var seen map[within]bool
	if unique {
		seen = make(map[within]bool, len(tasks))
	}
	for i, t := range tasks {
		key := t.UniqueKey
		switch {
		case key == "" && t.OnConflict != 0:
			return invalid(at("tasks", i, "on_conflict"), "has no effect without unique_key")
		case key == "" && t.UniqueForMs != 0:
			return invalid(at("tasks", i, "unique_for_ms"), "has no effect without unique_key")
		case (key != "") != unique:
			return invalid(at("tasks", i, "unique_key"), "all tasks of a request have one, or none has: send the others in a request of their own")
		case !unique:
			continue
		case len(key) > UniqueKeyBytesMax:
			return invalid(at("tasks", i, "unique_key"), "has %d bytes, at most %d are allowed", len(key), UniqueKeyBytesMax)
		case !utf8.ValidString(key):
			return invalid(at("tasks", i, "unique_key"), "is not UTF-8")
		case seen[within{t.OrderKey, key}]:
			return invalid(at("tasks", i, "unique_key"), "is that of an earlier task of the request")
		case t.OnConflict < yardv1.OnConflict_ON_CONFLICT_EXISTING || t.OnConflict > yardv1.OnConflict_ON_CONFLICT_REPLACE:
			return invalid(at("tasks", i, "on_conflict"), "%d is not known", t.OnConflict)
		}
		seen[within{t.OrderKey, key}] = true
		if err := between(at("tasks", i, "unique_for_ms"), t.UniqueForMs, 0, ms(AheadMax)); err != nil {
			return err
		}
	}
	return nil
}
