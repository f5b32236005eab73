# Runs a job with the gem, and prints what its handler got.
require "jobq"

url = ENV.fetch("DATABASE_URL")
ran = Queue.new
worker = Jobq::Worker.new(url, queues: ["gem"])
worker.handle("from the gem") { |payload, _job| ran << payload["n"]; { doubled: payload["n"] * 2 } }
worker.start
Jobq.enqueue(PG.connect(url), "from the gem", { n: 21 }, queue: "gem")
puts ran.pop
worker.stop
