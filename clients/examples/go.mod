module example.com/tidemark-examples

go 1.18

require github.com/gomodule/redigo v1.9.2
