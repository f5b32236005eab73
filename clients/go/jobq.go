// Package jobq is a producer and a worker for jobq, a job queue in PostgreSQL. It speaks
// docs/protocol.md.
//
// Producers use the caller's driver and transaction, pgx or database/sql:
//
//	job, err := jobq.Enqueue(ctx, tx.QueryRow, jobq.NewJob{Kind: "send_email", Payload: email})
//
// A worker has connections of its own:
//
//	w := &jobq.Worker{URL: url, Handlers: map[string]jobq.Handler{"send_email": sendEmail}}
//	err := w.Run(ctx) // until ctx is done; then jobs finish, for w.Grace
package jobq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgconn"
)

// ---- producers

// Row is what a driver returns for a query of one row.
type Row interface{ Scan(dest ...any) error }

// NewJob is a job to enqueue; what is zero is left to the kind, the queue and the defaults.
type NewJob struct {
	Kind           string         `json:"kind"`
	Payload        any            `json:"payload,omitempty"`
	Queue          string         `json:"queue,omitempty"`
	RunAt          *time.Time     `json:"run_at,omitempty"`
	Priority       int            `json:"priority,omitempty"`
	MaxAttempts    int            `json:"max_attempts,omitempty"`
	Timeout        string         `json:"timeout,omitempty"` // as PostgreSQL writes it: "90 s"
	IdempotencyKey string         `json:"idempotency_key,omitempty"`
	DedupKey       string         `json:"dedup_key,omitempty"`
	Dedup          string         `json:"dedup,omitempty"`
	Metadata       map[string]any `json:"metadata,omitempty"`
	ConcurrencyKey string         `json:"concurrency_key,omitempty"`
}

// Enqueued says which job there is now, and whether the call made it.
type Enqueued struct {
	JobID   string `json:"job_id"`
	Created bool   `json:"created"`
}

// Enqueue adds a job in the transaction whose QueryRow (pgx) or QueryRowContext (database/sql)
// is given; it exists when that commits.
func Enqueue[R Row](ctx context.Context, queryRow func(context.Context, string, ...any) R, job NewJob) (Enqueued, error) {
	made, err := EnqueueMany(ctx, queryRow, []NewJob{job})
	if err != nil {
		return Enqueued{}, err
	}
	return made[0], nil
}

// EnqueueMany adds many jobs with one call, all or none.
func EnqueueMany[R Row](ctx context.Context, queryRow func(context.Context, string, ...any) R, jobs []NewJob) ([]Enqueued, error) {
	given, err := json.Marshal(jobs)
	if err != nil {
		return nil, err
	}
	var answer string
	row := queryRow(ctx, "select jsonb_agg(to_jsonb(e) order by e.ordinal)::text from jobq.enqueue_many($1::jsonb) as e", string(given))
	if err := row.Scan(&answer); err != nil {
		return nil, err
	}
	var made []Enqueued
	return made, json.Unmarshal([]byte(answer), &made)
}

// PublishOptions are the options of Publish; what is zero is left out.
type PublishOptions struct {
	Metadata       map[string]any
	IdempotencyKey string
}

// Publish enqueues a job of each kind that has subscribed to an event, and returns the ids of
// the jobs, by kind. A nil payload is an empty object.
func Publish[R Row](ctx context.Context, queryRow func(context.Context, string, ...any) R, event string, payload any, options PublishOptions) (map[string]string, error) {
	if payload == nil {
		payload = struct{}{}
	}
	given, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	metadata, err := json.Marshal(options.Metadata)
	if err != nil {
		return nil, err
	}
	var answer string
	row := queryRow(ctx, "select coalesce(jsonb_object_agg(p.kind, p.job_id), '{}')::text"+
		" from jobq.publish($1::text, $2::jsonb, nullif($3::jsonb, 'null'), nullif($4::text, '')) as p",
		event, string(given), string(metadata), options.IdempotencyKey)
	if err := row.Scan(&answer); err != nil {
		return nil, err
	}
	var made map[string]string
	return made, json.Unmarshal([]byte(answer), &made)
}

// Emit emits an event for the jobs that wait for it now or later; isFirst says whether it is the
// first of its name.
func Emit[R Row](ctx context.Context, queryRow func(context.Context, string, ...any) R, event string, payload any) (isFirst bool, err error) {
	given, err := json.Marshal(payload)
	if err != nil {
		return false, err
	}
	var answer string
	err = queryRow(ctx, "select jobq.emit($1::text, $2::jsonb)::text", event, string(given)).Scan(&answer)
	return answer == "true", err
}

// Cancel cancels a waiting job, or asks the worker of a running one: "cancelled",
// "cancel_requested" or "already_finished".
func Cancel[R Row](ctx context.Context, queryRow func(context.Context, string, ...any) R, jobID string) (outcome string, err error) {
	return outcome, queryRow(ctx, "select jobq.cancel($1::uuid)", jobID).Scan(&outcome)
}

// ---- what handlers return as errors; anything else is a failure that is tried again

// Retry says that the attempt failed, and when to try again; zero is the kind's backoff.
type Retry struct {
	Code, Message string
	In            time.Duration
}

func (e *Retry) Error() string { return e.Message }

// Permanent says that the job cannot be done, now or later.
type Permanent struct{ Code, Message string }

func (e *Permanent) Error() string { return e.Message }

// Snooze has the job done later; the attempt does not count.
type Snooze struct{ For time.Duration }

func (e *Snooze) Error() string { return "put off" }

// errSuspended says that the job waits for an event, and has been given back.
var errSuspended = errors.New("the job waits for an event")

// ---- jobs

// Handler does a job; what it returns, any JSON, is the job's result. Its context is done when
// it should stop: cancelled, timed out, lost, or at the end of the worker.
type Handler func(ctx context.Context, job *Job) (any, error)

// Job is a running attempt, as its handler sees it.
type Job struct {
	ID       string
	Attempt  int
	Kind     string
	Queue    string
	Payload  json.RawMessage
	Metadata json.RawMessage

	link           *link
	lease, timeout time.Duration
	heldAt         time.Time
	stop           context.CancelFunc
	isCancelled    bool
	isCompleted    bool
	end            *settlement
	steps          map[string]json.RawMessage
}

// Complete completes a job in the transaction whose QueryRow (pgx) or QueryRowContext
// (database/sql) is given, that of the handler's own rows: they commit together or not at all.
// Roll back when it returns an error. What the handler returns without an error after it is not
// recorded, and without a commit the attempt fails; it returns an error where the commit has
// failed or has had no answer.
func Complete[R Row](ctx context.Context, queryRow func(context.Context, string, ...any) R, job *Job, result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return &Permanent{"RESULT_INVALID", err.Error()}
	}
	var is string
	row := queryRow(ctx, "select jobq.complete($1::uuid, $2::integer, $3::jsonb)::text", job.ID, job.Attempt, string(text))
	if err := row.Scan(&is); isUnfit(err) {
		return &Permanent{"RESULT_REFUSED", err.Error()}
	} else if err != nil {
		return err
	}
	job.isCompleted = true
	return nil
}

// Step does something once, whatever becomes of the attempt, and decodes what it has come to
// into value; ran says whether it was done now.
func (j *Job) Step(ctx context.Context, name string, value any, work func() (any, error)) (ran bool, err error) {
	known, err := j.recorded(ctx)
	if err != nil {
		return false, err
	}
	if earlier, is := known[name]; is {
		return false, json.Unmarshal(earlier, value)
	}
	done, err := work()
	if err != nil {
		return true, err
	}
	text, err := json.Marshal(done)
	if err != nil {
		return true, &Permanent{"STEP_INVALID", err.Error()}
	}
	rows, err := j.link.exec(ctx, "select jobq.save_step($1, $2, $3, $4)", j.ID, j.Attempt, name, string(text))
	if err != nil {
		return true, err
	}
	return true, json.Unmarshal(rows[0][0], value)
}

// WaitFor waits for an event; zero is for ever. The job is given back until it comes, and the
// handler starts anew: return the error at once.
func (j *Job) WaitFor(ctx context.Context, event string, timeout time.Duration) (json.RawMessage, error) {
	known, err := j.recorded(ctx)
	if err != nil {
		return nil, err
	}
	var came struct {
		Outcome string
		Payload json.RawMessage
	}
	if ended, is := known["event:"+event]; is {
		err = json.Unmarshal(ended, &came)
	} else {
		var within any
		if timeout > 0 {
			within = fmt.Sprintf("%f s", timeout.Seconds())
		}
		var rows [][][]byte
		rows, err = j.link.exec(ctx, "select outcome, payload from jobq.wait_for($1, $2, $3, $4)", j.ID, j.Attempt, event, within)
		if err == nil {
			came.Outcome, came.Payload = string(rows[0][0]), rows[0][1]
		}
	}
	switch {
	case err != nil:
		return nil, err
	case came.Outcome == "waiting":
		return nil, errSuspended
	case came.Outcome == "timed_out":
		return nil, &Permanent{"EVENT_TIMEOUT", event + " did not come in time"}
	}
	return came.Payload, nil
}

// Spend reports what the attempt has really cost, in place of the job's cost. The last report counts.
func (j *Job) Spend(ctx context.Context, cost float64) error {
	_, err := j.link.exec(ctx, "select jobq.spend($1, $2, $3)", j.ID, j.Attempt, cost)
	return err
}

// Log adds a line to the job's log.
func (j *Job) Log(ctx context.Context, level, message string) error {
	_, err := j.link.exec(ctx, "select jobq.log($1, $2, $3, $4)", j.ID, j.Attempt, level, message)
	return err
}

func (j *Job) recorded(ctx context.Context) (map[string]json.RawMessage, error) {
	if j.steps != nil || j.Attempt == 1 {
		return j.steps, nil
	}
	rows, err := j.link.exec(ctx, "select name, value from jobq.list_steps($1)", j.ID)
	if err != nil {
		return nil, err
	}
	j.steps = map[string]json.RawMessage{}
	for _, row := range rows {
		j.steps[string(row[0])] = row[1]
	}
	return j.steps, nil
}

// settlement is how an attempt has ended.
type settlement struct {
	end       string // succeeded, failed, released or cancelled
	result    []byte
	message   string
	code      string
	retryable bool
	in        time.Duration
}

func failed(message, code string, retryable bool) *settlement {
	message = strings.ToValidUTF8(strings.ReplaceAll(message, "\x00", "\ufffd"), "\ufffd")
	return &settlement{end: "failed", message: message, code: code, retryable: retryable}
}

// ---- workers

// Worker claims jobs and has handlers do them. Set what it needs, and call Run once.
type Worker struct {
	URL         string
	Handlers    map[string]Handler
	Queues      []string      // in the order in which to look at them; "default"
	Concurrency int           // how many jobs run at a time; 10
	Poll        time.Duration // between looks when nothing happens; 5 s
	Grace       time.Duration // for running jobs, when Run's context is done; 30 s
	ListenURL   string        // leads past a pooler; URL
	NoListen    bool          // poll only
	Name        string

	calls, vital, own, listening *link
	mu                           sync.Mutex
	running                      map[string]*Job
	settled                      []*Job
	unknown                      []string
	isStopping                   bool
	isListening                  bool
	isAsleep                     bool // and producers know it
	later                        int
	news, beatNow                chan struct{}
	questions                    chan question
	beatAt                       time.Time
}

type question struct {
	sql    string
	args   []any
	answer chan bool
}

const jobColumns = "outcome, job_id, attempt, kind, payload, metadata, queue," +
	" extract(epoch from lease)::float8, extract(epoch from timeout)::float8"

// Run works until the context is done; then it lets running jobs finish for the grace period,
// and gives back those that do not.
func (w *Worker) Run(ctx context.Context) error {
	w.prepare()
	beside, end := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	for _, part := range []func(context.Context){w.beat, w.maintain, w.listen} {
		parts.Add(1)
		go func(part func(context.Context)) { defer parts.Done(); part(beside) }(part)
	}
	over := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			w.stop(over)
		case <-over:
		}
	}()
	w.work()
	close(over)
	_, err := w.calls.exec(context.Background(), "select jobq.retire_worker($1)", w.Name)
	end()
	parts.Wait()
	for _, one := range []*link{w.calls, w.vital, w.own} {
		one.close()
	}
	return err
}

func (w *Worker) prepare() {
	if w.Queues == nil {
		w.Queues = []string{"default"}
	}
	if w.Concurrency == 0 {
		w.Concurrency = 10
	}
	if w.Poll == 0 {
		w.Poll = 5 * time.Second
	}
	if w.Grace == 0 {
		w.Grace = 30 * time.Second
	}
	if w.ListenURL == "" {
		w.ListenURL = w.URL
	}
	if w.Name == "" {
		host, _ := os.Hostname()
		w.Name = fmt.Sprintf("%s:%d:%06x", host, os.Getpid(), time.Now().UnixNano()&0xffffff)
	}
	w.calls, w.vital, w.own = &link{url: w.URL}, &link{url: w.URL}, &link{url: w.URL}
	w.listening = &link{url: w.ListenURL}
	w.running = map[string]*Job{}
	w.news, w.beatNow = make(chan struct{}, 1), make(chan struct{}, 1)
	w.questions = make(chan question)
}

func (w *Worker) stop(over <-chan struct{}) {
	w.mu.Lock()
	w.isStopping = true
	w.mu.Unlock()
	nudge(w.news)
	select {
	case <-over:
		return
	case <-time.After(w.Grace):
	}
	for _, job := range w.jobs() {
		w.settle(job, &settlement{end: "released"})
	}
}

// ---- claiming and settling

func (w *Worker) work() {
	failures, quiet := 0, 2*time.Millisecond
	for {
		w.mu.Lock()
		batch, room := w.settled, w.Concurrency-len(w.running)
		w.settled = nil
		isOver := w.isStopping && len(w.running) == 0 && len(batch) == 0 && w.later == 0
		if w.isStopping {
			room = 0
		}
		w.mu.Unlock()
		if isOver {
			return
		}
		if len(batch) == 0 && room == 0 {
			w.sleep(w.Poll)
			continue
		}
		claimed, err := w.exchange(batch, room)
		if err == nil && claimed == 0 && len(batch) == 0 {
			err = w.idle(&quiet)
		} else if err == nil {
			quiet = 2 * time.Millisecond
			if claimed > 0 && w.isAnnounced() {
				w.announce("select false from jobq.end_wait()")
			}
		}
		if err == nil {
			failures = 0
			continue
		}
		log.Printf("jobq: %v", err)
		time.Sleep(jitter(time.Duration(math.Min(0.1*math.Pow(2, float64(failures)), 5) * float64(time.Second))))
		failures++
	}
}

// idle says that the worker sleeps, so that it claims once more; or else sleeps.
func (w *Worker) idle(quiet *time.Duration) error {
	if w.listens() && !w.isAnnounced() {
		if !w.announce("select jobq.begin_wait($1)", w.Queues) {
			if *quiet *= 2; *quiet > 250*time.Millisecond {
				*quiet = 250 * time.Millisecond
			}
			w.sleep(*quiet)
		}
		return nil
	}
	rows, err := w.calls.exec(context.Background(), "select extract(epoch from jobq.due_in($1, $2))::float8", w.Queues, w.left())
	if err != nil {
		return err
	}
	pause := jitter(w.Poll)
	if due := rows[0][0]; due != nil {
		if in := seconds(due); in < pause {
			pause = in
		}
	}
	w.sleep(pause)
	return nil
}

// exchange settles a batch and claims; what has no answer is settled again.
func (w *Worker) exchange(batch []*Job, room int) (claimed int, err error) {
	var rest []*Job
	for i, job := range batch {
		switch job.end.end {
		case "cancelled":
			_, err = w.calls.exec(context.Background(), "select jobq.confirm_cancel($1, $2)", job.ID, job.Attempt)
		case "released":
			_, err = w.calls.exec(context.Background(), "select jobq.release($1, $2, now() + make_interval(secs => $3))",
				job.ID, job.Attempt, job.end.in.Seconds())
		default:
			rest = append(rest, job)
		}
		if err != nil && IsAway(err) {
			return 0, w.again(append(rest, batch[i:]...), err)
		}
	}
	claimed, err = w.settleAndClaim(rest, room)
	if err == nil || len(rest) == 0 {
		return claimed, err
	}
	if IsAway(err) {
		return 0, w.again(rest, err)
	}
	for i, job := range rest { // one of them was refused: find it
		if _, err = w.settleAndClaim([]*Job{job}, 0); err != nil && !IsAway(err) {
			job.end = failed(err.Error(), "RESULT_REFUSED", false)
			_, err = w.settleAndClaim([]*Job{job}, 0)
		}
		if err != nil && IsAway(err) {
			return 0, w.again(rest[i:], err)
		}
	}
	return 0, nil
}

func (w *Worker) again(jobs []*Job, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = append(jobs, w.settled...)
	return err
}

func (w *Worker) settleAndClaim(batch []*Job, room int) (claimed int, err error) {
	var ids, results []string
	var attempts []int
	var failures []map[string]any
	held := map[string]*Job{}
	for _, job := range batch {
		held[key(job.ID, job.Attempt)] = job
		if job.end.end == "succeeded" {
			ids, attempts, results = append(ids, job.ID), append(attempts, job.Attempt), append(results, string(job.end.result))
			continue
		}
		failure := map[string]any{
			"job_id": job.ID, "attempt": job.Attempt, "error": job.end.message,
			"error_code": job.end.code, "retryable": job.end.retryable,
		}
		if job.end.in > 0 {
			failure["retry_in"] = fmt.Sprintf("%f s", job.end.in.Seconds())
		}
		failures = append(failures, failure)
	}
	var failing any
	if failures != nil {
		text, err := json.Marshal(failures)
		if err != nil {
			return 0, err
		}
		failing = string(text)
	}
	sentAt := time.Now()
	rows, err := w.calls.exec(context.Background(), "select "+jobColumns+" from jobq.exchange($1, $2, $3, $4, $5, $6, $7, except_kinds => $8)",
		w.Queues, w.Name, room, ids, attempts, "["+strings.Join(results, ",")+"]", failing, w.left())
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		switch string(row[0]) {
		case "claimed":
			claimed++
			w.begin(row, sentAt)
		case "held": // another transaction has the row: settle it later
			if job := held[key(string(row[1]), number(row[2]))]; !job.isLeftOpen() {
				w.settleLater(job)
			}
		}
	}
	return claimed, nil
}

// isLeftOpen says whether a handler has left its transaction open for as long as a lease: there
// is no waiting for it; the job comes back by its lease when that transaction has ended.
func (j *Job) isLeftOpen() bool { return j.isCompleted && time.Since(j.heldAt) > j.lease }

func (w *Worker) settleLater(job *Job) {
	w.mu.Lock()
	w.later++
	w.mu.Unlock()
	time.AfterFunc(250*time.Millisecond, func() {
		w.mu.Lock()
		w.later--
		w.settled = append(w.settled, job)
		w.mu.Unlock()
		nudge(w.news)
	})
}

// ---- handlers

func (w *Worker) begin(row [][]byte, heldAt time.Time) {
	ctx, stop := context.WithCancel(context.Background())
	job := &Job{
		ID: string(row[1]), Attempt: number(row[2]), Kind: string(row[3]), Payload: row[4], Metadata: row[5], Queue: string(row[6]),
		lease: seconds(row[7]), timeout: seconds(row[8]), heldAt: heldAt, stop: stop, link: w.own,
	}
	w.mu.Lock()
	w.running[key(job.ID, job.Attempt)] = job
	w.mu.Unlock()
	timer := time.AfterFunc(job.timeout, func() {
		w.settle(job, failed(fmt.Sprintf("it took longer than %s", job.timeout), "TIMEOUT", true))
	})
	go func() {
		defer timer.Stop()
		w.handle(ctx, job)
	}()
}

func (w *Worker) handle(ctx context.Context, job *Job) {
	end := failed("the handler ended its goroutine", "ERROR", true)
	defer func() { // after a panic and after runtime.Goexit, too
		if reason := recover(); reason != nil {
			end = failed(shown(reason), "PANIC", true)
		}
		w.settle(job, end)
	}()
	handler, is := w.Handlers[job.Kind]
	if !is {
		end = w.leave(job.Kind)
		return
	}
	value, err := handler(ctx, job)
	if err != nil {
		end = w.settlementOf(err, job)
		return
	}
	if job.isCompleted { // a failure, which is lost and changes nothing when that has committed
		end = failed("the handler completed the job, and did not commit", "NOT_COMMITTED", true)
		return
	}
	result, err := json.Marshal(value)
	if err != nil {
		end = failed(err.Error(), "RESULT_INVALID", false)
		return
	}
	end = &settlement{end: "succeeded", result: result}
}

// leave gives a job back, and has its kind left to workers that have a handler for it.
func (w *Worker) leave(kind string) *settlement {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, known := range w.unknown {
		if known == kind {
			return &settlement{end: "released", in: 30 * time.Second}
		}
	}
	w.unknown = append(w.unknown, kind)
	return &settlement{end: "released"}
}

func (w *Worker) left() any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unknown == nil {
		return nil
	}
	return append([]string(nil), w.unknown...)
}

func (w *Worker) settlementOf(err error, job *Job) *settlement {
	var retry *Retry
	var permanent *Permanent
	var snooze *Snooze
	w.mu.Lock()
	isCancelled := job.isCancelled
	w.mu.Unlock()
	switch {
	case errors.Is(err, errSuspended) || SQLState(err) == "JQ003":
		return nil
	case errors.As(err, &snooze):
		return &settlement{end: "released", in: snooze.For}
	case isCancelled:
		return &settlement{end: "cancelled"}
	case errors.As(err, &permanent):
		return failed(permanent.Message, permanent.Code, false)
	case errors.As(err, &retry):
		end := failed(retry.Message, retry.Code, true)
		end.in = retry.In
		return end
	}
	return failed(err.Error(), "ERROR", true)
}

// settle notes how an attempt has ended, unless that is known; nil when nothing is to be
// settled.
func (w *Worker) settle(job *Job, end *settlement) {
	w.mu.Lock()
	if _, is := w.running[key(job.ID, job.Attempt)]; is {
		delete(w.running, key(job.ID, job.Attempt))
		if job.end = end; end != nil {
			w.settled = append(w.settled, job)
		}
	}
	w.mu.Unlock()
	job.stop()
	nudge(w.news)
}

func (w *Worker) jobs() []*Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs := make([]*Job, 0, len(w.running))
	for _, job := range w.running {
		jobs = append(jobs, job)
	}
	return jobs
}

// ---- heartbeats and upkeep

func (w *Worker) beat(ctx context.Context) {
	isAsked := false
	for ctx.Err() == nil {
		sentAt := time.Now()
		var ids []string
		var attempts []int
		var due []*Job
		for _, job := range w.jobs() {
			if isAsked || sentAt.Sub(job.heldAt) > job.lease/3-100*time.Millisecond {
				due, ids, attempts = append(due, job), append(ids, job.ID), append(attempts, job.Attempt)
			}
		}
		if len(due) > 0 || sentAt.Sub(w.beatAt) > 15*time.Second {
			rows, err := w.vital.exec(ctx, "select outcome from jobq.heartbeat($1, $2, $3, $4, $5)", w.Name, ids, attempts, w.Queues, w.left())
			if err == nil {
				w.beatAt = sentAt
			} else if ctx.Err() == nil {
				log.Printf("jobq: no heartbeat: %v", err)
			}
			for i, job := range due {
				if err == nil {
					w.hear(job, string(rows[i][0]), sentAt)
				} else if time.Since(job.heldAt) > job.lease {
					w.settle(job, nil)
				}
			}
		}
		isAsked = wait(ctx, w.beatNow, 100*time.Millisecond)
	}
}

func (w *Worker) hear(job *Job, outcome string, sentAt time.Time) {
	switch outcome {
	case "lost":
		w.settle(job, nil)
	case "cancel_requested":
		w.mu.Lock()
		job.isCancelled = true
		w.mu.Unlock()
		job.stop()
		job.heldAt = sentAt
	case "extended":
		job.heldAt = sentAt
	}
}

func (w *Worker) maintain(ctx context.Context) {
	for ctx.Err() == nil {
		pause := jitter(3 * time.Second)
		rows, err := w.own.exec(ctx, "select bool_or(has_more), extract(epoch from jobq.maintain_in())::float8 from jobq.maintain()")
		switch {
		case err != nil && ctx.Err() == nil:
			log.Printf("jobq: no maintenance: %v", err)
		case err == nil && string(rows[0][0]) == "t":
			pause = 0
		case err == nil && rows[0][1] != nil && seconds(rows[0][1]) < pause:
			if pause = seconds(rows[0][1]); pause < 100*time.Millisecond {
				pause = 100 * time.Millisecond
			}
		}
		wait(ctx, nil, pause)
	}
}

// ---- sleeping and waking

func (w *Worker) sleep(d time.Duration) {
	if d > 0 {
		wait(context.Background(), w.news, d)
	}
}

func (w *Worker) listens() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isListening && !w.isStopping
}

// announce has the listening session say whether the worker sleeps; true when it may.
func (w *Worker) announce(sql string, args ...any) bool {
	asked := question{sql, args, make(chan bool, 1)}
	for deadline := time.Now().Add(3 * time.Second); w.listens() && time.Now().Before(deadline); {
		w.listening.interrupt()
		select {
		case w.questions <- asked:
			return <-asked.answer
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false
}

// listen has one goroutine that waits for notifications, and speaks when asked to.
func (w *Worker) listen(ctx context.Context) {
	for ctx.Err() == nil && !w.NoListen {
		w.listening.onNotice = func(channel, queue string) {
			for _, own := range w.Queues {
				if own == queue && channel == "jobq" {
					nudge(w.news)
				} else if own == queue {
					nudge(w.beatNow)
				}
			}
		}
		_, err := w.listening.exec(ctx, "listen jobq")
		if err == nil {
			_, err = w.listening.exec(ctx, "listen jobq_cancel")
		}
		w.setListening(err == nil)
		nudge(w.beatNow)
		for err == nil && ctx.Err() == nil {
			select {
			case asked := <-w.questions:
				var rows [][][]byte
				rows, err = w.listening.exec(ctx, asked.sql, asked.args...)
				is := err == nil && string(rows[0][0]) == "t"
				w.setAsleep(is)
				asked.answer <- is
			default:
				err = w.listening.wait(ctx)
			}
		}
		w.setListening(false)
		w.listening.close()
		if ctx.Err() == nil {
			log.Printf("jobq: not listening, polling meanwhile: %v", err)
		}
		wait(ctx, nil, jitter(200*time.Millisecond))
	}
}

func (w *Worker) isAnnounced() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isAsleep
}

func (w *Worker) setAsleep(is bool) {
	w.mu.Lock()
	w.isAsleep = is
	w.mu.Unlock()
}

func (w *Worker) setListening(is bool) {
	w.mu.Lock()
	w.isListening, w.isAsleep = is, false
	w.mu.Unlock()
	if is {
		nudge(w.news)
	}
}

// ---- a connection that comes back

type link struct {
	url      string
	onNotice func(channel, queue string)
	mu       sync.Mutex
	conn     *pgconn.PgConn
	waiting  sync.Mutex
	awake    context.CancelFunc
}

// exec runs a statement, within ten seconds, and returns its rows as text. A connection may have
// been lost since it was last used, so what has no answer is repeated once on a new one: all
// that a worker calls may be repeated.
func (l *link) exec(ctx context.Context, sql string, args ...any) ([][][]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	isOld := l.conn != nil && !l.conn.IsClosed()
	if !isOld {
		if err := l.connect(ctx); err != nil {
			return nil, err
		}
	}
	values := make([][]byte, len(args))
	for i, arg := range args {
		values[i] = asText(arg)
	}
	result := l.conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if result.Err == nil || !IsAway(result.Err) {
		return result.Rows, result.Err
	}
	l.conn.Close(ctx)
	if isOld && l.onNotice == nil && ctx.Err() == nil && l.connect(ctx) == nil {
		result = l.conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	}
	return result.Rows, result.Err
}

func (l *link) connect(ctx context.Context) error {
	config, err := pgconn.ParseConfig(l.url)
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = "jobq worker"
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if l.onNotice != nil {
			l.onNotice(n.Channel, n.Payload)
		}
	}
	l.conn, err = pgconn.ConnectConfig(ctx, config)
	return err
}

// wait waits for a notification, for a second at most or until it is interrupted.
func (l *link) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	l.waiting.Lock()
	l.awake = cancel
	l.waiting.Unlock()
	if err := l.conn.WaitForNotification(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (l *link) interrupt() {
	l.waiting.Lock()
	defer l.waiting.Unlock()
	if l.awake != nil {
		l.awake()
	}
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		l.conn.Close(ctx)
		l.conn = nil
	}
}

// ---- tools

// SQLState returns an error's SQLSTATE, empty where there was no answer.
func SQLState(err error) string {
	var refused interface{ SQLState() string }
	if errors.As(err, &refused) {
		return refused.SQLState()
	}
	return ""
}

// IsAway tells whether there was no answer, or another transaction was first: the call may be
// repeated.
func IsAway(err error) bool {
	state := SQLState(err)
	for _, beginning := range []string{"08", "57P", "53", "40001", "40P01", "25006"} {
		if strings.HasPrefix(state, beginning) {
			return true
		}
	}
	return state == ""
}

// isUnfit tells whether the database refuses a result for what it is.
func isUnfit(err error) bool {
	state := SQLState(err)
	return state == "JQ005" || state == "JQ006" || strings.HasPrefix(state, "22")
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wait waits for a nudge, for so long at most; it tells whether one came.
func wait(ctx context.Context, c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-c:
		return true
	}
	return false
}

func jitter(d time.Duration) time.Duration { return time.Duration((0.5 + rand.Float64()) * float64(d)) }

func key(id string, attempt int) string { return fmt.Sprint(id, " ", attempt) }

func number(text []byte) (n int) {
	fmt.Sscan(string(text), &n)
	return n
}

func seconds(text []byte) time.Duration {
	var s float64
	fmt.Sscan(string(text), &s)
	return time.Duration(math.Min(s, 1e9) * float64(time.Second))
}

func shown(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = "a panic that cannot be shown"
		}
	}()
	return fmt.Sprint(value)
}

// asText returns an argument as PostgreSQL reads it; nil is null.
func asText(value any) []byte {
	switch value := value.(type) {
	case nil:
		return nil
	case []string:
		quoted := make([]string, len(value))
		for i, one := range value {
			quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(one) + `"`
		}
		return []byte("{" + strings.Join(quoted, ",") + "}")
	case []int:
		return []byte("{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(value), " ", ","), "[]") + "}")
	}
	return []byte(fmt.Sprint(value))
}
