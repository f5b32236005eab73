# frozen_string_literal: true

# Publishes and emits twice, prints the answers, then works until SIGTERM.

require_relative "../../clients/ruby/lib/jobq"

Busy = Class.new(StandardError)
VeryBusy = Class.new(Busy)
Gone = Class.new(Busy)

url = ENV.fetch("DATABASE_URL")
connection = PG.connect(url)
published = Array.new(2) do
  Jobq.publish(connection, "order.paid", { id: 7 }, metadata: { by: "test" }, idempotency_key: "order-7")
end
emitted = Array.new(2) { Jobq.emit(connection, "opened", { door: 1 }) }
puts JSON.generate(published: published, emitted: emitted)
$stdout.flush

fail_with = lambda do |payload, _job|
  case payload["fail"]
  when "busy" then raise VeryBusy, "busy"
  when "gone" then raise Gone, "gone"
  when "outage" then PG.connect("host=127.0.0.1 port=1")
  when "outcome" then raise Jobq::Retry.new("later", seconds: 50)
  else raise ArgumentError, "other"
  end
end
worker = Jobq::Worker.new(url, listen: false, poll: 0.2)
worker.handle("named", retry_on: [Busy], discard_on: Gone, retry_delay: 100, &fail_with)
worker.handle("delayed", retry_delay: ->(error, attempt) { 200 * attempt if error.is_a?(Busy) }, &fail_with)
worker.handle("broken", retry_delay: ->(_error, _attempt) { "soon" }, &fail_with)
begin
  worker.handle("wrong", retry_on: "Busy") {}
rescue TypeError
  exit worker.run
end
