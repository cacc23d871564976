// npm run bench: runs the benchmarks on a temporary Redis and passes its arguments on to them, as in `npm run bench -- worker
// --json`.
import { join } from 'node:path'
import { temporaryRedis } from './redis/temporary.mjs'
import { foreground } from './system/foreground.mjs'
import { helpOn } from './system/options.mjs'
import { explainAndExit } from './system/user-error.mjs'

helpOn(`npm run bench -- [all|worker|runner|pipeline|enqueue [CASE...]|against CHECKOUT|memory|events|follow-ups|idle [CHECKOUT]] [--pairs N] [--json]

Measures throughput or cost on a temporary Redis or, if REDIS_URL is set, on that server.

  worker   compare a worker with a plain BullMQ worker in the same run
  runner   measure the cost of an attempt in the engine, without Redis
  pipeline compare a pipeline within one process with p-map on the same work, without Redis
  enqueue  compare an enqueue with what a user would write with fastify and BullMQ, about four minutes for each CASE:
           single (over HTTP), idempotent (with a new key each time), bulk (1,000 tasks in each request), client-redis
           (in process, without HTTP), or limit (with fastify alone, without Redis); defaults to all of them
  against  compare the CPU time that the process and Redis use per task with that of another checkout of Bullpen,
           whose dependencies are installed
  memory   measure the bytes in Redis of a waiting task whose input has 100 bytes, with and without an idempotency key, for
           Redis's default settings and for those that Bullpen recommends, beside a job of plain BullMQ; deletes all data
           of the server
  events   measure how long the event of a task's end takes to reach many readers of one API process, and the memory and CPU
           time of that process; with as many callers that wait for a task each, and one reader that never reads
  --readers, --queue-readers, --rate
           how many readers of a task each, and of the whole queue, 'events' has, and how many tasks end per second;
           default to 1000, 10 and 1000, for 20 --seconds
  follow-ups
           compare the CPU time that the process and Redis use for a task with one follow-up with that of a task whose handler
           enqueues the next one, for the same tasks; the follow-up is named by the caller, or added by the handler
  idle     count the commands and connections of idle workers and of idle plain BullMQ workers, about two minutes each;
           with CHECKOUT, also those of another checkout of Bullpen
  --workers, --queues, --seconds
           how many workers 'idle' starts, how many queues each worker has, and how long it counts; default to
           20, 10 and 60. 'enqueue' measures each side for that many seconds; defaults to 10
  --pairs  how often 'against', 'follow-ups' and 'enqueue' measure each side; defaults to 11, 11 and 5
  --tasks  how many tasks 'against' and 'follow-ups' enqueue and run in each measurement; defaults to 12000 and 4000
  --json   print one JSON object per line`)

const main = join(import.meta.dirname, '../tools/bench/src/main.ts')
const redis = await temporaryRedis('bench').catch(explainAndExit)
const env = { ...process.env, REDIS_URL: redis.url }
const code = await foreground(process.execPath, [main, ...process.argv.slice(2)], { env })
await redis.end()
process.exit(code)
