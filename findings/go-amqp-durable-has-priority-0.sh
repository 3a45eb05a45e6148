#!/usr/bin/env bash
# Believed: a message whose producer states no priority has priority 4 (AMQP 1.0 §3.2.1).
# So (github.com/Azure/go-amqp 1.7.0): a message without a Header leaves the priority out, which is 4. A message with
#   Header{Durable: true}, the only way to make it durable, states priority 0, because Go's zero value is sent.
# Why it matters here: durable messages of Go services are behind all others in a queue with priorities, and a selector
#   JMSPriority >= 4 finds none of them.
set -euo pipefail
work=$(mktemp -d); trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT; cd "$work"
export GOPATH="$work/go" GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module finding

go 1.23

require github.com/Azure/go-amqp v1.7.0
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"

	amqp "github.com/Azure/go-amqp"
)

func main() {
	for _, header := range []*amqp.MessageHeader{nil, {Durable: true}, {Durable: true, Priority: 4}} {
		message := amqp.NewMessage([]byte("x"))
		message.Header = header
		sent, err := message.MarshalBinary()
		if err != nil {
			panic(err)
		}
		var got amqp.Message
		if err := got.UnmarshalBinary(sent); err != nil {
			panic(err)
		}
		if got.Header == nil {
			fmt.Println("no header")
		} else {
			fmt.Printf("% x: durable %v, priority %d\n", sent[:len(sent)-6], got.Header.Durable, got.Header.Priority)
		}
	}
}
GO
timeout 300 go run . | tee out

diff - out <<'OUT'
no header
00 53 70 d0 00 00 00 07 00 00 00 02 41 50 00: durable true, priority 0
00 53 70 d0 00 00 00 05 00 00 00 01 41: durable true, priority 4
OUT
echo "as stated"
