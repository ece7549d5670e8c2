package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// A network of members, each in a network namespace of its own:
//
//	      bridge `members` 10.79.0.0/24      members among themselves: what a member sends to another one is dropped
//	   ┌──────────┼──────────┐               by giving it a wrong address of that one's card, in one direction
//	member 1   member 2   member 3 …
//	   └──────────┼──────────┘
//	      bridge `clients` 10.79.1.0/24      this program is on it, and reaches every member at all times
//
// It ends with this process, which has to be in a network namespace of its own: see enterNamespaces.
type network struct {
	// The process that holds each namespace, by the number of its member.
	holders map[int]*exec.Cmd
}

const (
	clientPort = 7379
	peerPort   = 8379
	// A card that no member has.
	noCard = "02:ff:ff:ff:ff:ff"
)

func clientAddress(member int) string { return fmt.Sprintf("10.79.1.%d:%d", member, clientPort) }
func peerAddress(member int) string   { return fmt.Sprintf("10.79.0.%d:%d", member, peerPort) }
func card(member int) string          { return fmt.Sprintf("02:4f:00:00:00:%02x", member) }

// insideVariable is set in the process that is in namespaces of its own.
const insideVariable = "HISTORIES_INSIDE"

// enterNamespaces runs this program once more, in new namespaces of network and mounts, and returns what it ended with. As a user other than
// root it gets a namespace of users too.
func enterNamespaces() (int, error) {
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), insideVariable+"=1")
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	again.SysProcAttr = attributes
	if err := again.Start(); err != nil {
		return 0, err
	}
	// What ends this process ends that one.
	_ = again.Wait()
	return again.ProcessState.ExitCode(), nil
}

func newNetwork(members int) (*network, error) {
	// What is mounted here is not seen elsewhere.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("cannot make mounts private: %w", err)
	}
	n := &network{map[int]*exec.Cmd{}}
	err := ip(
		"link set lo up",
		"link add members type bridge",
		"link set members up",
		"link add clients type bridge",
		"addr add 10.79.1.254/24 dev clients",
		"link set clients up",
	)
	for member := 1; err == nil && member <= members; member++ {
		err = n.add(member, members)
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *network) add(member, members int) error {
	holder := exec.Command("sleep", "infinity")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		return fmt.Errorf("cannot create a network namespace: %w", err)
	}
	n.holders[member] = holder
	inside := []string{"link set lo up"}
	for subnet, bridge := range []string{"members", "clients"} {
		outside := fmt.Sprintf("%s%d", bridge, member)
		err := ip(
			fmt.Sprintf("link add %s type veth peer name %s netns %d", outside, bridge, holder.Process.Pid),
			fmt.Sprintf("link set %s master %s up", outside, bridge),
		)
		if err != nil {
			return err
		}
		inside = append(inside, fmt.Sprintf("addr add 10.79.%d.%d/24 dev %s", subnet, member, bridge))
		if bridge == "members" {
			inside = append(inside, "link set members address "+card(member))
		}
		inside = append(inside, fmt.Sprintf("link set %s up", bridge))
	}
	for other := 1; other <= members; other++ {
		if other != member {
			inside = append(inside, reaching(other, card(other)))
		}
	}
	return n.inside(member, inside...)
}

func reaching(member int, card string) string {
	return fmt.Sprintf("neigh replace 10.79.0.%d lladdr %s dev members nud permanent", member, card)
}

// A pair of members; what the first sends to the second is concerned.
type direction struct{ from, to int }

// set has exactly these directions cut, of all between these members.
func (n *network) set(members []int, cut map[direction]bool) error {
	var wait sync.WaitGroup
	failures := make(chan error, len(members))
	for _, from := range members {
		var changes []string
		for _, to := range members {
			if from == to {
				continue
			}
			other := card(to)
			if cut[direction{from, to}] {
				other = noCard
			}
			changes = append(changes, reaching(to, other))
		}
		wait.Add(1)
		go func(from int) {
			defer wait.Done()
			failures <- n.inside(from, changes...)
		}(from)
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// command runs a program in a member's network.
func (n *network) command(member int, name string, arguments ...string) *exec.Cmd {
	into := []string{"-t", fmt.Sprint(n.holders[member].Process.Pid), "-n", name}
	command := exec.Command("nsenter", append(into, arguments...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}

func (n *network) inside(member int, changes ...string) error {
	return batch(n.command(member, "ip", "-batch", "-"), changes)
}

func ip(changes ...string) error { return batch(exec.Command("ip", "-batch", "-"), changes) }

func batch(command *exec.Cmd, changes []string) error {
	command.Stdin = strings.NewReader(strings.Join(changes, "\n") + "\n")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("`ip` could not %s: %w: %s", strings.Join(changes, "; "), err, output)
	}
	return nil
}

func (n *network) close() {
	for _, holder := range n.holders {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	}
}
