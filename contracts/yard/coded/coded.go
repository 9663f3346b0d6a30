// Package coded keeps the content of tasks from everyone but the programs that have its keys: a Codec encodes what a client sends, and decodes
// what it receives.
//
// Owns: the form of encoded payloads and texts, which parts of a request are encoded, an encryption, a compression, and the codec server that lets
// a command or a console read them. Never does: keep keys, or touch what the engine reads: types, tasklists, groups, keys, headers, error types.
//
// Encoded are payloads, results, progress, and the texts of failures, which often quote the input. An encoded payload is binary. It says of
// itself that it is encoded, so old tasks without a codec are read as they are. Content that is encoded already stays as it is: a program without
// keys may pass it on. The expressions of a schedule are not replaced in an encoded payload.
//
// On failure: a request with content that does not encode is not sent. Content that does not decode is returned as it is; a worker fails the attempt, which is
// tried again.
//
//	codec, err := coded.AESGCM("k2", map[string][]byte{"k1": old, "k2": now})
//	client, err := yard.Connect(url, "shop", yard.WithCodec(codec))
package coded

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Codec encodes bytes, and decodes what it has encoded. It says in its output all that it needs to know for that, such as the name of a key. It
// is safe for concurrent use.
type Codec interface {
	Encode(data []byte) ([]byte, error)
	// Decode returns an error for what is not its own output.
	Decode(data []byte) ([]byte, error)
}

const (
	// payloadMark begins an encoded payload. The byte behind it is the encoding of the content; then comes the output of the codec.
	payloadMark = "\x00yard-coded\x01"
	// textMark begins an encoded text. The output of the codec comes behind it, in base64.
	textMark = "yard-coded:"
	// textBytesMax is the longest text that the engine takes, bytes; plainBytesMax is what fits into it with a codec that adds up to 100 bytes.
	textBytesMax, plainBytesMax = 4096, 2900
)

// IsEncoded reports whether a payload is the output of a codec.
func IsEncoded(data []byte) bool { return bytes.HasPrefix(data, []byte(payloadMark)) }

func encodePayload(c Codec, p *yardv1.Payload) error {
	if len(p.Data) == 0 || IsEncoded(p.Data) {
		return nil
	}
	data, err := c.Encode(p.Data)
	if err != nil {
		return notEncoded("the payload", err)
	}
	p.Data = append(append([]byte(payloadMark), byte(p.Encoding)), data...)
	p.Encoding = yardv1.Encoding_ENCODING_BINARY
	return nil
}

// notEncoded is the error of a codec: UNAVAILABLE if it says so, as that of a codec server that is away, else INVALID_ARGUMENT.
func notEncoded(what string, err error) error {
	code := fault.InvalidArgument
	if fault.CodeOf(err) == fault.Unavailable {
		code = fault.Unavailable
	}
	return fault.New(code, "%s is not encoded: %v", what, err)
}

func decodePayload(c Codec, p *yardv1.Payload) error {
	if len(p.Data) <= len(payloadMark) || !IsEncoded(p.Data) {
		return nil
	}
	data, err := c.Decode(p.Data[len(payloadMark)+1:])
	if err != nil {
		return err
	}
	p.Encoding, p.Data = yardv1.Encoding(p.Data[len(payloadMark)]), data
	return nil
}

func encodeText(c Codec, text string) (string, error) {
	if text == "" || strings.HasPrefix(text, textMark) {
		return text, nil
	}
	data, err := c.Encode([]byte(cut(text, plainBytesMax)))
	if err != nil {
		return "", notEncoded("the text of a failure", err)
	}
	if encoded := textMark + base64.StdEncoding.EncodeToString(data); len(encoded) <= textBytesMax {
		return encoded, nil
	}
	return "the text of the failure is too long when it is encoded", nil
}

func decodeText(c Codec, text string) (string, error) {
	encoded, ok := strings.CutPrefix(text, textMark)
	if !ok {
		return text, nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return text, err
	}
	plain, err := c.Decode(data)
	if err != nil {
		return text, err
	}
	return string(plain), nil
}

// cut shortens a text to n bytes or less, between two characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
