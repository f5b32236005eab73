// Publishes and emits twice, and prints the answers.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgconn"
	"jobq"
)

type row struct {
	rows [][][]byte
	err  error
}

func (r row) Scan(dest ...any) error {
	if r.err == nil {
		*(dest[0].(*string)) = string(r.rows[0][0])
	}
	return r.err
}

func main() {
	ctx := context.Background()
	connection, err := pgconn.Connect(ctx, os.Getenv("DATABASE_URL"))
	check(err)
	queryRow := func(ctx context.Context, sql string, args ...any) row {
		var values [][]byte
		for _, arg := range args {
			values = append(values, []byte(fmt.Sprint(arg)))
		}
		result := connection.ExecParams(ctx, sql, values, nil, nil, nil).Read()
		return row{result.Rows, result.Err}
	}
	var published []map[string]string
	var emitted []bool
	for n := 0; n < 2; n++ {
		jobs, err := jobq.Publish(ctx, queryRow, "order.paid", map[string]int{"id": 7}, jobq.PublishOptions{
			Metadata: map[string]any{"by": "test"}, IdempotencyKey: "order-7",
		})
		check(err)
		isFirst, err := jobq.Emit(ctx, queryRow, "opened", map[string]int{"door": 1})
		check(err)
		published, emitted = append(published, jobs), append(emitted, isFirst)
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"published": published, "emitted": emitted}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
