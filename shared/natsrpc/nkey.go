package natsrpc

import (
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// rotatingKey logs in with the nkey seed that a file holds at each connect. nats.go itself keeps the
// public key of the first one, and would be refused forever where the file holds another.
type rotatingKey struct {
	file string
	conn atomic.Pointer[nats.Conn]
}

// option is a nats.Option; it reads the file each time that a new connection is tried.
func (k *rotatingKey) option(o *nats.Options) error {
	now, err := k.load()
	if err == nil {
		o.Nkey, o.SignatureCB = now.Nkey, k.sign
	}
	return err
}

// sign is called for each login, after nats.go has read the public key. So what it sets is for the
// next try: the first with another seed is refused, and the one behind it is not. The connection is
// locked meanwhile, as it is wherever nats.go reads that key.
func (k *rotatingKey) sign(nonce []byte) ([]byte, error) {
	now, err := k.load()
	if err != nil {
		return nil, err
	}
	if nc := k.conn.Load(); nc != nil && nc.Opts.Nkey != now.Nkey {
		nc.Opts.Nkey = now.Nkey
	}
	return now.SignatureCB(nonce)
}

func (k *rotatingKey) load() (now nats.Options, err error) {
	option, err := nats.NkeyOptionFromSeed(k.file)
	if err == nil {
		err = option(&now)
	}
	return now, err
}
