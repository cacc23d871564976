// `bench NAME [--json]` runs one benchmark, or all of them, with the Redis that REDIS_URL names.
import { parseArgs } from 'node:util'
import { benchAgainst, describeComparison } from './against.ts'
import { asJson, asTable, type Result } from './report.ts'
import { benchRunner } from './runner.ts'
import { benchWorker } from './worker.ts'

const BENCHES: Readonly<Record<string, (redisUrl: string) => AsyncGenerator<Result>>> = {
  worker: benchWorker,
  runner: benchRunner,
}
const USAGE = `usage: REDIS_URL=redis://… bench [all|${Object.keys(BENCHES).join('|')}] [--json]
       REDIS_URL=redis://… bench against CHECKOUT [--pairs 11] [--tasks 12000] [--json]`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    pairs: { type: 'string', default: '11' },
    tasks: { type: 'string', default: '12000' },
  },
})
const [name = 'all', ...others] = positionals
const chosen = name === 'all' ? Object.values(BENCHES) : [BENCHES[name]]
const redisUrl = process.env['REDIS_URL']
const [pairs, tasks] = [Number(values.pairs), Number(values.tasks)]

if (redisUrl === undefined || !(pairs > 0) || !(tasks > 0)) {
  fail()
} else if (name === 'against') {
  const [checkout, ...more] = others
  if (checkout === undefined || more.length > 0) fail()
  else {
    for await (const comparison of benchAgainst({ checkout, pairs, tasks, redisUrl })) {
      console.log(values.json ? JSON.stringify(comparison) : describeComparison(comparison))
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
