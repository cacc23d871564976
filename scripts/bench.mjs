// npm run bench: runs the benchmarks on a temporary Redis and passes its arguments on to them, as in `npm run bench -- worker
// --json`.
import { join } from 'node:path'
import { temporaryRedis } from './redis/temporary.mjs'
import { foreground } from './system/foreground.mjs'
import { helpOn } from './system/options.mjs'
import { explainAndExit } from './system/user-error.mjs'

helpOn(`npm run bench -- [NAME] [OPERAND...] [--OPTION N...] [--json]

Measures throughput or cost on a temporary Redis or, if REDIS_URL is set, on that server. Without a name, runs the first three.

  worker [CASE...] [--slots 50] [--pairs 11] [--seconds 2]
           compare the rate, and the CPU time of the process and of Redis, with those of a plain BullMQ worker, three minutes
           for each CASE: short, long, events (long tasks with events), or 10ms (long tasks whose handler waits for 10 ms);
           defaults to all of them. Each side has --slots
  runner   measure the cost of an attempt in the engine, without Redis
  pipeline compare a pipeline within one process with p-map on the same work, without Redis
  pipeline-fleet [--rounds 5]
           compare the same pipeline within one process, as functions and as tasks, with one and two workers of a fleet
  runs [--pairs 3] [--items 100000] *
           compare the rate and the memory of a pipeline across the fleet with those of a flow of plain BullMQ, item by item,
           and with ten times as many items in batches of 100
  enqueue [CASE...] [--pairs 5] [--seconds 10]
           compare an enqueue with what a user would write with fastify and BullMQ, about four minutes for each CASE:
           single (over HTTP), idempotent (with a new key each time), bulk (1,000 tasks in each request), client-redis
           (in process, without HTTP), or limit (with fastify alone, without Redis); defaults to all of them. Each side
           is measured for --seconds at a time
  wait [CASE...] [--callers 64] [--pairs 5] [--seconds 10]
           compare an enqueue over HTTP and the wait for its result with what a user would write with fastify, queue.add and
           job.waitUntilFinished, about four minutes for each CASE: enqueue-and-wait (in one request) or enqueue-then-wait
           (in two requests); defaults to both. Each side has one worker process
  against CHECKOUT [--pairs 11] [--tasks 12000]
           compare the CPU time that the process and Redis use per task with that of another checkout of Bullpen,
           whose dependencies are installed
  http [--callers 64] [--seconds 10] [--rounds 3]
           measure the platform end to end over HTTP, from the call that enqueues a task until its result has arrived, with
           1, 2 and 4 worker processes: tasks per second, p50, p99, and the CPU time of each part
  sustain [--minutes 10] [--rate 2000] [--waiting 500000] [--workers 2] [--interval 60] *
           measure whether throughput and latency stay constant: --rate new tasks per second over 50 queues, of which 25 have a
           backlog of --waiting tasks in all; prints the p99 of enqueue, wait and end and the use of Redis every --interval
           seconds, and how they change over time
  overhead [CASE...] [--pairs 5] [--tasks 20000]
           compare the CPU time per task of a process and of Redis with and without metrics and logs, about a minute for each
           CASE: short (a short task, which writes no line at the level info), long (which writes two), or enqueue (over HTTP).
           short-traced and long-traced compare metrics and logs with and without traces. Defaults to all cases
  follow-ups [--pairs 11] [--tasks 4000]
           compare the CPU time that the process and Redis use for a task with one follow-up with that of a task whose handler
           enqueues the next one, for the same tasks; the follow-up is named by the caller, or added by the handler
  turns [CHECKOUT] [--pairs 11] [--tasks 12000] [--keys 1000] [--waiting 100000] *
           compare the CPU time of the process and of Redis, and the bytes in Redis, for tasks whose concurrency keys take turns
           with those for tasks without a key; the bytes of --waiting tasks also for keys with one task each, and for the settings
           of memory; with CHECKOUT, also the CPU time of tasks without a key with that of another checkout, as against does
  memory * measure the bytes in Redis of a waiting task whose input has 100 bytes, with and without an idempotency key, for
           Redis's default settings and for those that Bullpen recommends, beside a job of plain BullMQ
  scrape [--queues 50] [--waiting 200] [--scrapes 20] *
           measure the commands and the CPU time of Redis for a scrape of one API process, and show that they do not depend on
           the number of waiting tasks in each queue
  events [--readers 1000] [--queue-readers 10] [--rate 1000] [--seconds 20] *
           measure how long the event of a task's end takes to reach many readers of one API process, and the memory and CPU
           time of that process; with as many callers that wait for a task each, and one reader that never reads.
           --readers of a task each and --queue-readers of the whole queue, while --rate tasks end per second
  idle [CHECKOUT] [--workers 20] [--queues 10] [--seconds 60] *
           count the commands and connections of idle workers with --queues each, and of idle plain BullMQ workers, about
           two minutes each; with CHECKOUT, also those of another checkout of Bullpen

  *        deletes all data of the server, and therefore refuses to start if it holds any
  --json   print one JSON object per line`)

const main = join(import.meta.dirname, '../tools/bench/src/main.ts')
const redis = await temporaryRedis('bench').catch(explainAndExit)
const env = { ...process.env, REDIS_URL: redis.url }
const code = await foreground(process.execPath, [main, ...process.argv.slice(2)], { env })
await redis.end()
process.exit(code)
