package validate

import (
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// OrderKeyBytesMax bounds an order key.
const OrderKeyBytesMax = 256

// orderKey checks one; "" = none.
func orderKey(path, key string) error {
	switch {
	case len(key) > OrderKeyBytesMax:
		return invalid(path, "has %d bytes, at most %d are allowed", len(key), OrderKeyBytesMax)
	case !utf8.ValidString(key):
		return invalid(path, "is not UTF-8")
	}
	return nil
}

// orderKeys checks the order keys of a request, whose tasks all have one, or none has.
func orderKeys(tasks []*yardv1.NewTask) error {
	ordered := tasks[0].OrderKey != ""
	for i, t := range tasks {
		switch key := t.OrderKey; {
		case key == "" && t.OrderPolicy != 0:
			return invalid(at("tasks", i, "order_policy"), "has no effect without order_key")
		case (key != "") != ordered:
			return invalid(at("tasks", i, "order_key"), "all tasks of a request have one, or none has: send the others in a request of their own")
		case !ordered:
		case orderKey("", key) != nil:
			return orderKey(at("tasks", i, "order_key"), key)
		case t.OrderPolicy < yardv1.OrderPolicy_ORDER_POLICY_SKIP || t.OrderPolicy > yardv1.OrderPolicy_ORDER_POLICY_BLOCK:
			return invalid(at("tasks", i, "order_policy"), "%d is not known", t.OrderPolicy)
		}
	}
	return nil
}
