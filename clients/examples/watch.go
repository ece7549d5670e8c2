// Prints "lsn seq value" for GET KEY and each change of it, through broken connections and restarts of the server: none
// twice, none left out. In RESP2, with redigo, which hands on whatever comes. Usage: go run watch.go HOST:PORT KEY
package main

import (
	"fmt"
	"math/rand"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
)

var name, lsn, seq, delay = "", 0, 0, 50 // the subscription, the numbers of the last line, milliseconds to wait

func main() {
	for ; ; delay += delay * (4000 - delay) / 4000 { // towards 4000
		fmt.Fprintln(os.Stderr, follow(os.Args[1], os.Args[2]))
		// By chance up to half less, so that not all clients of a server come back at one moment.
		time.Sleep(time.Duration(delay/2+rand.Intn(delay/2)) * time.Millisecond)
	}
}

// follow prints what comes on one connection.
func follow(address, key string) error {
	connection, err := redis.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	command, args := "EMITRECONNECT", []interface{}{key, name, lsn}
	if name == "" {
		command, args = "GET.WATCH", args[:1]
	}
	frame, err := redis.Values(connection.Do(command, args...))
	for err == nil {
		var kind, value string
		var came, number int
		switch redis.Scan(frame, &kind); kind {
		case "sub_id": // NAME lsn LSN seq SEQ value VALUE
			redis.Scan(frame, nil, &name, nil, &lsn, nil, &seq, nil, &value)
			fmt.Println(lsn, seq, value)
		case "emission": // NAME LSN SEQ VALUE
			if redis.Scan(frame, nil, nil, &came, &number, &value); came > lsn {
				lsn, seq, delay = came, number, 50
				fmt.Println(lsn, seq, value)
			}
		default: // OK NEXT, unless emissions are gone
			if redis.Scan(frame, nil, &number); kind != "OK" || number != seq+1 {
				name = "" // so that the next connection begins anew
				return fmt.Errorf("emissions may be missing: %s", kind)
			}
		}
		frame, err = redis.Values(redis.ReceiveWithTimeout(connection, 0))
	}
	return err
}
