package login

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"
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

// ReadUsers reads a YAML file of users, or of the provider that has them. A user has a name, a role, domains ("*" is all), and for logins by password the
// bcrypt hash of it:
//
//	users:
//	  - {name: ann, role: admin, domains: ["*"], password: $2y$10$…}
func ReadUsers(file string) (Users, *ProviderConfig, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	var content struct {
		Provider *ProviderConfig
		Users    []struct {
			Name, Role, Password string
			Domains              []string
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&content); err != nil {
		return nil, nil, fmt.Errorf("users: %s: %w", file, err)
	}
	if content.Provider != nil {
		err := content.Provider.check()
		if err == nil && len(content.Users) > 0 {
			err = errors.New("a file with a provider has no users: their roles come from its claims")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("users: %s: %w", file, err)
		}
		return nil, content.Provider, nil
	}
	if n := len(content.Users); n == 0 || n > usersMax {
		return nil, nil, fmt.Errorf("users: %s has %d users: want 1 to %d", file, n, usersMax)
	}
	all := Users{}
	for i, one := range content.Users {
		wrong := func(format string, args ...any) (Users, *ProviderConfig, error) {
			return nil, nil, fmt.Errorf("users: %s: user %d %q: %w", file, i+1, one.Name, fmt.Errorf(format, args...))
		}
		role, err := ParseRole(one.Role)
		switch {
		case one.Name == "":
			return wrong("a user needs a name")
		case all[one.Name].Role != 0:
			return wrong("the name is there twice")
		case err != nil:
			return wrong("%w", err)
		}
		if err := checkDomains(one.Domains); err != nil {
			return wrong("%w", err)
		}
		u := user{Identity: Identity{Name: one.Name, Role: role, Domains: one.Domains}}
		if one.Password != "" {
			u.hash = []byte(one.Password)
			if _, err := bcrypt.Cost(u.hash); err != nil {
				return wrong("password: want the bcrypt hash of it, as `htpasswd -nBC 12 NAME` prints it")
			}
		}
		all[one.Name] = u
	}
	return all, nil, nil
}
