package validate

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// OrderKeyBytesMax bounds an order key.
const OrderKeyBytesMax = 256

// orderKey checks one; "" = none.
func orderKey(path, s string) error { return key(path, s, OrderKeyBytesMax) }

// orderKeys checks the order keys of a request, whose tasks all have one, or none has.
func orderKeys(tasks []*yardv1.NewTask) error {
	ordered := tasks[0].OrderKey != ""
	for i, t := range tasks {
		var err error
		switch {
		case t.OrderKey == "" && t.OrderPolicy != 0:
			err = invalid("/order_policy", "has no effect without order_key")
		case (t.OrderKey != "") != ordered:
			err = invalid("/order_key", "all tasks of a request have one, or none has: send the others in a request of their own")
		case ordered:
			err = firstError(orderKey("/order_key", t.OrderKey), known("/order_policy", int32(t.OrderPolicy), yardv1.OrderPolicy_name))
		}
		if err != nil {
			return inside(at("/tasks", i), err)
		}
	}
	return nil
}

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
		var err error
		own := within{t.OrderKey, t.UniqueKey}
		switch {
		case t.UniqueKey == "" && t.OnConflict != 0:
			err = invalid("/on_conflict", "has no effect without unique_key")
		case t.UniqueKey == "" && t.UniqueForMs != 0:
			err = invalid("/unique_for_ms", "has no effect without unique_key")
		case (t.UniqueKey != "") != unique:
			err = invalid("/unique_key", "all tasks of a request have one, or none has: send the others in a request of their own")
		case !unique:
			continue
		case seen[own]:
			err = invalid("/unique_key", "is that of an earlier task of the request")
		default:
			err = firstError(
				key("/unique_key", t.UniqueKey, UniqueKeyBytesMax),
				known("/on_conflict", int32(t.OnConflict), yardv1.OnConflict_name),
				between("/unique_for_ms", t.UniqueForMs, 0, ms(AheadMax)),
			)
		}
		if err != nil {
			return inside(at("/tasks", i), err)
		}
		seen[own] = true
	}
	return nil
}
