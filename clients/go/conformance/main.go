// Connects the client to the conformance suite: docs/contributing/conformance.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgconn"

	"jobq"
)

type order map[string]json.RawMessage

func (o order) text(name string) string    { return decoded[string](o[name]) }
func (o order) number(name string) float64 { return decoded[float64](o[name]) }
func (o order) key() string                { return o.text("job_id") + string(o["attempt"]) }

func decoded[T any](text json.RawMessage) (value T) {
	_ = json.Unmarshal(text, &value)
	return value
}

var (
	url    = os.Getenv("DATABASE_URL")
	saying sync.Mutex
	mu     sync.Mutex
	orders = map[string]chan order{}
)

func say(line map[string]any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(string(text))
}

func inbox(key string) chan order {
	mu.Lock()
	defer mu.Unlock()
	if orders[key] == nil {
		orders[key] = make(chan order, 16)
	}
	return orders[key]
}

func handle(ctx context.Context, job *jobq.Job) (any, error) {
	own := &producer{}
	defer own.close() // and so rolls back what has not committed
	event := func(name string, more map[string]any) {
		line := map[string]any{"event": name, "job_id": job.ID, "attempt": job.Attempt}
		for member, value := range more {
			line[member] = value
		}
		say(line)
	}
	event("started", map[string]any{"kind": job.Kind, "payload": job.Payload})
	box := inbox(fmt.Sprint(job.ID, job.Attempt))
	for {
		var told order
		select {
		case told = <-box:
		case <-ctx.Done():
			event("stopping", nil)
			return nil, ctx.Err()
		}
		in := time.Duration(told.number("in") * float64(time.Second))
		switch told.text("do") {
		case "return":
			if own.conn == nil {
				return told["value"], nil
			}
			if err := jobq.Complete(ctx, own.queryRow, job, told["value"]); err != nil {
				return nil, err
			}
			if string(told["commit"]) == "false" {
				return nil, nil
			}
			return nil, own.queryRow(ctx, "commit").err
		case "note":
			own.queryRow(ctx, "begin")
			if err := own.queryRow(ctx, "insert into public.note values ($1)", told.text("note")).err; err != nil {
				return nil, err
			}
			event("noted", nil)
		case "raise":
			return nil, errors.New(told.text("message"))
		case "retry":
			return nil, &jobq.Retry{Code: told.text("code"), Message: told.text("message"), In: in}
		case "permanent":
			return nil, &jobq.Permanent{Code: told.text("code"), Message: told.text("message")}
		case "snooze":
			return nil, &jobq.Snooze{For: in}
		case "step":
			var value json.RawMessage
			ran, err := job.Step(ctx, told.text("name"), &value, func() (any, error) { return told["value"], nil })
			if err != nil {
				return nil, err
			}
			event("step", map[string]any{"value": value, "ran": ran})
		case "spend":
			if err := job.Spend(ctx, told.number("cost")); err != nil {
				return nil, err
			}
			event("spent", nil)
		case "wait":
			payload, err := job.WaitFor(ctx, told.text("event"), 0)
			if err != nil {
				return nil, err
			}
			event("arrived", map[string]any{"payload": payload})
		default:
			runtime.Goexit()
		}
	}
}

// producer has one connection, and QueryRow as other drivers have it.
type producer struct{ conn *pgconn.PgConn }

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

func (p *producer) queryRow(ctx context.Context, sql string, args ...any) row {
	var err error
	if p.conn == nil || p.conn.IsClosed() {
		if p.conn, err = pgconn.Connect(ctx, url); err != nil {
			return row{err: err}
		}
	}
	var values [][]byte
	for _, arg := range args {
		values = append(values, []byte(fmt.Sprint(arg)))
	}
	result := p.conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return row{result.Rows, result.Err}
}

func (p *producer) close() {
	if p.conn != nil {
		p.conn.Close(context.Background())
	}
}

func (p *producer) answer(ctx context.Context, told order) (map[string]any, error) {
	switch told.text("op") {
	case "enqueue":
		all, _ := json.Marshal(told)
		made, err := jobq.Enqueue(ctx, p.queryRow, decoded[jobq.NewJob](all))
		return map[string]any{"job_id": made.JobID, "created": made.Created}, err
	case "enqueue_many":
		made, err := jobq.EnqueueMany(ctx, p.queryRow, decoded[[]jobq.NewJob](told["jobs"]))
		return map[string]any{"jobs": made}, err
	case "cancel":
		outcome, err := jobq.Cancel(ctx, p.queryRow, told.text("job_id"))
		return map[string]any{"outcome": outcome}, err
	case "transaction":
		p.queryRow(ctx, "begin")
		p.queryRow(ctx, "insert into public.note values ($1)", told.text("note"))
		made, err := jobq.EnqueueMany(ctx, p.queryRow, decoded[[]jobq.NewJob](told["jobs"]))
		p.queryRow(ctx, told.text("end"))
		return map[string]any{"jobs": made}, err
	}
	return nil, fmt.Errorf("unknown: %s", told["op"])
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	var worker *jobq.Worker
	over := make(chan struct{})
	own := &producer{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		told := decoded[order](lines.Bytes())
		switch told.text("op") {
		case "handle":
			inbox(told.key()) <- told
		case "work":
			worker = &jobq.Worker{
				URL: url, Queues: decoded[[]string](told["queues"]), Concurrency: int(told.number("concurrency")),
				Poll: time.Duration(told.number("poll") * float64(time.Second)), Grace: time.Duration(told.number("grace") * float64(time.Second)),
				NoListen: !decoded[bool](told["listen"]), Handlers: map[string]jobq.Handler{told.text("kind"): handle},
			}
			go func() {
				if err := worker.Run(ctx); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				os.Exit(0)
			}()
			say(map[string]any{"id": told["id"]})
		default:
			answer, err := own.answer(ctx, told)
			if err != nil {
				code := ""
				var refused *pgconn.PgError
				if errors.As(err, &refused) {
					code = refused.ConstraintName
				}
				answer = map[string]any{"error": map[string]any{"sqlstate": jobq.SQLState(err), "code": code}}
			}
			answer["id"] = told["id"]
			say(answer)
		}
	}
	stop()
	if worker != nil {
		<-over
	}
}
