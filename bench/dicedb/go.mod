module example.com/tidemark-dicedb-load

go 1.24.0

require github.com/dicedb/dicedb-go v1.0.10

require (
	github.com/google/uuid v1.6.0 // indirect
	google.golang.org/protobuf v1.36.5 // indirect
)
