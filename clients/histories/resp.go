package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sort"
	"strconv"
	"strings"
	"time"
)

// A connection with one member. It repeats nothing and follows nothing: what becomes of a command is for its caller to say.
type connection struct {
	socket net.Conn
	reader *bufio.Reader
}

// Longest answer that is taken. The programs here ask for a few values at a time.
const maxAnswerBytes = 1 << 20

// Deepest nesting of arrays that is taken.
const maxAnswerDepth = 8

// errRefused is an answer that says that the command was not executed.
type serverError string

func (e serverError) Error() string { return string(e) }

// dial connects to a member and has it answer a PING, so that a process that is stopped is noticed before anything is sent that changes
// something.
func dial(address string, patience time.Duration) (*connection, error) {
	socket, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	c := &connection{socket, bufio.NewReader(socket)}
	answers, err := c.call(patience, []string{"PING"})
	if err == nil && answers[0] != "PONG" {
		err = fmt.Errorf("PING was answered %s", answers[0])
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *connection) close() { c.socket.Close() }

// send writes commands in one piece.
func (c *connection) send(deadline time.Time, commands ...[]string) error {
	var request strings.Builder
	for _, command := range commands {
		fmt.Fprintf(&request, "*%d\r\n", len(command))
		for _, argument := range command {
			fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(argument), argument)
		}
	}
	if err := c.socket.SetDeadline(deadline); err != nil {
		return err
	}
	_, err := io.WriteString(c.socket, request.String())
	return err
}

// call sends commands in one piece and returns their answers, as `answer` writes them. An error answer is a text that begins with "-". After
// an error of the connection it cannot be used any more, and whether the commands were executed is unknown.
func (c *connection) call(patience time.Duration, commands ...[]string) ([]string, error) {
	if err := c.send(time.Now().Add(patience), commands...); err != nil {
		return nil, err
	}
	answers := make([]string, 0, len(commands))
	for range commands {
		value, err := c.read(0)
		if err != nil {
			return nil, err
		}
		answers = append(answers, text(value))
	}
	return answers, nil
}

// value calls one command and returns its answer as it came.
func (c *connection) value(patience time.Duration, command ...string) (interface{}, error) {
	if err := c.send(time.Now().Add(patience), command); err != nil {
		return nil, err
	}
	return c.read(0)
}

// status is an answer such as OK, as opposed to a value.
type status string

func (c *connection) line() (string, error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(line, "\r\n"), nil
}

// read returns one answer of RESP2: a status, serverError, int64, string, nil, or []interface{}.
func (c *connection) read(depth int) (interface{}, error) {
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	if line == "" || depth > maxAnswerDepth {
		return nil, errors.New("the answer is none of RESP2")
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return status(rest), nil
	case '-':
		return serverError(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	length, err := strconv.Atoi(rest)
	if err != nil || length < -1 || length > maxAnswerBytes || (line[0] != '$' && line[0] != '*') {
		return nil, fmt.Errorf("the answer is none of RESP2: %q", line)
	}
	if length == -1 {
		return nil, nil
	}
	if line[0] == '$' {
		bytes := make([]byte, length+2)
		_, err := io.ReadFull(c.reader, bytes)
		return string(bytes[:length]), err
	}
	elements := make([]interface{}, 0)
	for i := 0; i < length; i++ {
		element, err := c.read(depth + 1)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	return elements, nil
}

// text writes an answer as models do: OK, 7, "value", nil, ["a" "b"], -ERR and so on.
func text(value interface{}) string {
	switch value := value.(type) {
	case status:
		return string(value)
	case serverError:
		return "-" + string(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case string:
		return strconv.Quote(value)
	case []interface{}:
		texts := make([]string, len(value))
		for i, element := range value {
			texts[i] = text(element)
		}
		return list(texts)
	}
	return "nil"
}

func list(texts []string) string { return "[" + strings.Join(texts, " ") + "]" }

// sorted gives an unordered answer, such as that of SMEMBERS, the one form that models have.
func sorted(answer string) string {
	if !strings.HasPrefix(answer, "[") {
		return answer
	}
	elements := strings.Fields(strings.Trim(answer, "[]"))
	sort.Strings(elements)
	return list(elements)
}
