// Package protofield walks over the fields of an encoded message, for what is read of it without decoding all.
//
// Owns: the wire format. Never does: copy. On failure: data that is no message is an error.
package protofield

import "google.golang.org/protobuf/encoding/protowire"

// Field is a varint, or length-delimited: Bytes is nil in the first, Varint 0 in the second.
type Field struct {
	Number protowire.Number
	Varint uint64
	// Bytes alias the message, in which they begin At.
	Bytes []byte
	At    int
}

// Each calls visit for each field of a message until it returns an error; the Number of those of other kinds is 0.
func Each(data []byte, visit func(Field) error) error {
	for at := 0; at < len(data); {
		number, kind, n := protowire.ConsumeTag(data[at:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		f := Field{Number: number}
		switch kind {
		case protowire.BytesType:
			f.Bytes, n = protowire.ConsumeBytes(data[at:])
		case protowire.VarintType:
			f.Varint, n = protowire.ConsumeVarint(data[at:])
		default:
			f.Number, n = 0, protowire.ConsumeFieldValue(number, kind, data[at:])
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		f.At = at - len(f.Bytes)
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}
