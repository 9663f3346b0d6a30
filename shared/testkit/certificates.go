package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are PEM files of an authority, and of a certificate by it that names 127.0.0.1 and
// "localhost" and serves both ends of a connection.
type Certificates struct{ CA, Cert, Key string }

// NewCertificates makes an authority and a certificate in a folder, over what is there.
func NewCertificates(tb testing.TB, dir string) Certificates {
	tb.Helper()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "yard test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "yard test"},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   ca.NotBefore, NotAfter: ca.NotAfter,
	}
	caKey, leafKey := newKey(tb), newKey(tb)
	c := Certificates{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for path, cert := range map[string]*x509.Certificate{c.CA: ca, c.Cert: leaf} {
		key := caKey
		if cert == leaf {
			key = leafKey
		}
		der, err := x509.CreateCertificate(rand.Reader, cert, ca, key.Public(), caKey)
		if err != nil {
			tb.Fatal(err)
		}
		writePEM(tb, path, "CERTIFICATE", der)
	}
	der, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		tb.Fatal(err)
	}
	writePEM(tb, c.Key, "EC PRIVATE KEY", der)
	return c
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func writePEM(tb testing.TB, path, kind string, der []byte) {
	tb.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		tb.Fatal(err)
	}
}
