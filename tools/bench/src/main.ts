// `bench NAME [--json]` runs one benchmark, or all of them, with the Redis that REDIS_URL names.
import { parseArgs } from 'node:util'
import { benchAgainst, describeComparison } from './against.ts'
import { benchIdle, describeIdle } from './idle.ts'
import { asJson, asTable, type Result } from './report.ts'
import { benchRunner } from './runner.ts'
import { benchWorker } from './worker.ts'

const BENCHES: Readonly<Record<string, (redisUrl: string) => AsyncGenerator<Result>>> = {
  worker: benchWorker,
  runner: benchRunner,
}
const USAGE = `usage: REDIS_URL=redis://… bench [all|${Object.keys(BENCHES).join('|')}] [--json]
       REDIS_URL=redis://… bench against CHECKOUT [--pairs 11] [--tasks 12000] [--json]
       REDIS_URL=redis://… bench idle [CHECKOUT] [--workers 20] [--queues 10] [--seconds 60] [--json]`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    pairs: { type: 'string', default: '11' },
    tasks: { type: 'string', default: '12000' },
    workers: { type: 'string', default: '20' },
    queues: { type: 'string', default: '10' },
    seconds: { type: 'string', default: '60' },
  },
})
const [name = 'all', ...others] = positionals
const chosen = name === 'all' ? Object.values(BENCHES) : [BENCHES[name]]
const redisUrl = process.env['REDIS_URL']
const [pairs, tasks] = [Number(values.pairs), Number(values.tasks)]
const [workers, queues, seconds] = [Number(values.workers), Number(values.queues), Number(values.seconds)]

if (redisUrl === undefined || ![pairs, tasks, workers, queues, seconds].every((given) => given > 0)) {
  fail()
} else if (name === 'against') {
  const [checkout, ...more] = others
  if (checkout === undefined || more.length > 0) fail()
  else {
    for await (const comparison of benchAgainst({ checkout, pairs, tasks, redisUrl })) {
      console.log(values.json ? JSON.stringify(comparison) : describeComparison(comparison))
    }
  }
} else if (name === 'idle') {
  const [checkout, ...more] = others
  if (more.length > 0) fail()
  else {
    for await (const load of benchIdle({ checkout, workers, queues, seconds, redisUrl })) {
      console.log(values.json ? JSON.stringify(load) : describeIdle(load))
    }
  }
} else if (others.length > 0 || chosen.includes(undefined)) {
  fail()
} else {
  for (const bench of chosen) {
    if (bench === undefined) continue
    for await (const result of bench(redisUrl)) console.log(values.json ? asJson(result) : asTable(result))
  }
}

function fail(): void {
  console.error(USAGE)
  process.exitCode = 2
}
