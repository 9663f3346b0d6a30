package auth_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The ACL lets matching in with the password in its file, of which it holds the digest; rendering again keeps both.
func TestTheACLOfRedisIsForThePasswordInItsFile(t *testing.T) {
	dir := t.TempDir()
	var acls []string
	for range 2 {
		testkit.NoError(t, testkit.Err(auth.Render(dir, plan())))
		acls = append(acls, read(t, filepath.Join(dir, auth.RedisACLFile)))
	}
	password := strings.TrimSpace(read(t, auth.RedisPasswordFile(dir)))
	digest := sha256.Sum256([]byte(password))
	want := "user default off\n" + topology.RedisACL(auth.RedisUser, hex.EncodeToString(digest[:])) + "\n"
	if len(password) < 20 || acls[0] != want || acls[1] != want {
		t.Errorf("a password of %d characters, and %q", len(password), acls)
	}
	info, err := os.Stat(auth.RedisPasswordFile(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	testkit.NoError(t, os.WriteFile(auth.RedisPasswordFile(dir), []byte("\n"), 0o600))
	if _, err := auth.Render(dir, plan()); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty password: %v", err)
	}
}
