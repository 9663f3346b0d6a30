package coded

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

var errTooShort = errors.New("the encoded content is too short")

// The first byte of compressed content says whether it is.
const (
	isPlain   = 0
	isGzipped = 1
)

// unzippedMax bounds what little content becomes when it is decompressed.
const unzippedMax = 16 << 20

type compressing struct {
	from int
	next Codec
}

// Gzip compresses content of from bytes or more, where that makes it smaller, and then has next encode it. A nil next is none. The engine takes
// 256 KiB of what comes out; what goes in has 16 MiB at most.
func Gzip(from int, next Codec) Codec { return &compressing{from: from, next: next} }

func (c *compressing) Encode(data []byte) ([]byte, error) {
	if len(data) > unzippedMax {
		return nil, fmt.Errorf("it has %d bytes, of which at most %d are compressed", len(data), unzippedMax)
	}
	out := append([]byte{isPlain}, data...)
	if len(data) >= c.from {
		small, err := zipped(data)
		if err != nil {
			return nil, err
		}
		if len(small) < len(out) {
			out = small
		}
	}
	if c.next == nil {
		return out, nil
	}
	return c.next.Encode(out)
}

func zipped(data []byte) ([]byte, error) {
	b := bytes.NewBuffer([]byte{isGzipped})
	w := gzip.NewWriter(b)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}

func (c *compressing) Decode(data []byte) ([]byte, error) {
	if c.next != nil {
		var err error
		if data, err = c.next.Decode(data); err != nil {
			return nil, err
		}
	}
	switch {
	case len(data) == 0:
		return nil, errTooShort
	case data[0] == isPlain:
		return data[1:], nil
	case data[0] != isGzipped:
		return nil, errors.New("the content is not compressed by this codec")
	}
	r, err := gzip.NewReader(bytes.NewReader(data[1:]))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, unzippedMax+1))
	if err == nil && len(plain) > unzippedMax {
		err = fmt.Errorf("it has more than %d bytes when it is decompressed", unzippedMax)
	}
	return plain, err
}
