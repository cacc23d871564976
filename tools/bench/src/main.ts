// `bench NAME [--json]` runs one benchmark, or all of them, with the Redis that REDIS_URL names.
import { asJson, asTable, type Result } from './report.ts'
import { benchRunner } from './runner.ts'
import { benchWorker } from './worker.ts'

const BENCHES: Readonly<Record<string, (redisUrl: string) => AsyncGenerator<Result>>> = {
  worker: benchWorker,
  runner: benchRunner,
}

const args = process.argv.slice(2)
const json = args.includes('--json')
const [name = 'all', ...others] = args.filter((argument) => argument !== '--json')
const chosen = name === 'all' ? Object.values(BENCHES) : [BENCHES[name]]
const redisUrl = process.env['REDIS_URL']

if (others.length > 0 || chosen.includes(undefined) || redisUrl === undefined) {
  console.error(`usage: REDIS_URL=redis://… bench [all|${Object.keys(BENCHES).join('|')}] [--json]`)
  process.exitCode = 2
} else {
  for (const bench of chosen) {
    if (bench === undefined) continue
    for await (const result of bench(redisUrl)) console.log(json ? asJson(result) : asTable(result))
  }
}
