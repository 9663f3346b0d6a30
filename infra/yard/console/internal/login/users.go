package login

import (
	"bytes"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// usersMax is how many users a file may have.
const usersMax = 10_000

// Users are those of a file, by name.
type Users map[string]user

type user struct {
	Identity
	// hash is the bcrypt hash of the password; nil = the user cannot log in with one.
	hash []byte
}

// ReadUsers reads a YAML file of users. Each has a name, a role, domains ("*" is all), and for logins by password the bcrypt hash of it:
//
//	users:
//	  - {name: ann, role: admin, domains: ["*"], password: $2y$10$…}
func ReadUsers(file string) (Users, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var content struct {
		Users []struct {
			Name, Role, Password string
			Domains              []string
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("users: %s: %w", file, err)
	}
	if n := len(content.Users); n == 0 || n > usersMax {
		return nil, fmt.Errorf("users: %s has %d users: want 1 to %d", file, n, usersMax)
	}
	all := Users{}
	for i, one := range content.Users {
		wrong := func(format string, args ...any) (Users, error) {
			return nil, fmt.Errorf("users: %s: user %d %q: %w", file, i+1, one.Name, fmt.Errorf(format, args...))
		}
		role, err := ParseRole(one.Role)
		switch {
		case one.Name == "":
			return wrong("a user needs a name")
		case all[one.Name].Role != 0:
			return wrong("the name is there twice")
		case err != nil:
			return wrong("%w", err)
		case len(one.Domains) == 0:
			return wrong("a user needs domains; %q is all", AllDomains)
		}
		for _, domain := range one.Domains {
			if err := ids.CheckName(domain); err != nil && domain != AllDomains {
				return wrong("domain %q %w", domain, err)
			}
		}
		u := user{Identity: Identity{one.Name, role, one.Domains}}
		if one.Password != "" {
			u.hash = []byte(one.Password)
			if _, err := bcrypt.Cost(u.hash); err != nil {
				return wrong("password: want the bcrypt hash of it, as `htpasswd -nBC 12 NAME` prints it")
			}
		}
		all[one.Name] = u
	}
	return all, nil
}
