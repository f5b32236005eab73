// Runs a job with the Go client, and prints what its handler got.
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

type row struct{ result *pgconn.Result }

func (r row) Scan(dest ...any) error {
	if r.result.Err == nil {
		*(dest[0].(*string)) = string(r.result.Rows[0][0])
	}
	return r.result.Err
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	url := os.Getenv("DATABASE_URL")
	connection, err := pgconn.Connect(ctx, url)
	check(err)
	queryRow := func(ctx context.Context, sql string, args ...any) row {
		var values [][]byte
		for _, arg := range args {
			values = append(values, []byte(fmt.Sprint(arg)))
		}
		return row{connection.ExecParams(ctx, sql, values, nil, nil, nil).Read()}
	}
	_, err = jobq.Enqueue(ctx, queryRow, jobq.NewJob{Kind: "from go", Queue: "go", Payload: map[string]int{"n": 21}})
	check(err)
	worker := &jobq.Worker{
		URL:    url,
		Queues: []string{"go"},
		Handlers: map[string]jobq.Handler{
			"from go": func(ctx context.Context, job *jobq.Job) (any, error) {
				var payload struct{ N int }
				err := json.Unmarshal(job.Payload, &payload)
				fmt.Println(payload.N)
				stop()
				return map[string]int{"doubled": payload.N * 2}, err
			},
		},
	}
	check(worker.Run(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
