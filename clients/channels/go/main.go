package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

type emission struct {
	Lsn, Seq      uint64
	Value         json.RawMessage
	Reason, Error string
}

// Of the last emission that is done with: store it with what you did.
var lsn uint64

func follow(ctx context.Context, client *redis.Client) error {
	pubsub := client.Subscribe(ctx, "prices")
	defer pubsub.Close()
	var seq uint64
	for {
		message, err := pubsub.Receive(ctx)
		if err != nil {
			return err
		}
		var line string
		answers := false
		switch message := message.(type) {
		case *redis.Subscription:
			args := []any{"GET.WATCH", "price", "|", "CHANNEL", "prices"}
			if lsn > 0 {
				args = append(args, "RESUME", lsn)
			}
			if line, err = client.Do(ctx, args...).Text(); err != nil {
				return err
			}
			answers = true
		case *redis.Message:
			line = message.Payload
		default:
			continue
		}
		var e emission
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return err
		}
		if e.Error != "" {
			return fmt.Errorf("%s", e.Error)
		}
		if answers && e.Value == nil {
			seq = e.Seq // emissions after it follow
		} else if answers || e.Seq == seq+1 || e.Reason != "" {
			lsn, seq = e.Lsn, e.Seq
			fmt.Println(lsn, seq, string(e.Value)) // what you do with it
		}
	}
}

func main() {
	options, err := redis.ParseURL(os.Args[1])
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(options)
	for {
		fmt.Fprintln(os.Stderr, follow(context.Background(), client))
		time.Sleep(100 * time.Millisecond)
	}
}
