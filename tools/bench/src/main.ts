// `bench NAME [--json]` runs one benchmark, or `all` that compare Bullpen with its peers and print a table, with the Redis that
// REDIS_URL names.
import { parseArgs } from 'node:util'
import { repeatedOption } from '@bullpen/contract/internal'
import { Redis } from 'ioredis'
import { BENCHES, type Bench } from './benches.ts'

const ALL = ['worker', 'runner', 'pipeline']

const USAGE = Object.entries({ all: {}, ...BENCHES })
  .map(([name, { operands, options = {} }]: [string, Partial<Bench>], i) => {
    const flags = Object.entries(options).map(([option, value]) => `[--${option} ${value}]`)
    const words = [
      'REDIS_URL=redis://… bench',
      name,
      ...(operands === undefined ? [] : [operands]),
      ...flags,
      '[--json]',
    ]
    return `${i === 0 ? 'usage:' : '      '} ${words.join(' ')}`
  })
  .join('\n')

const [name = 'all', ...rest] = process.argv.slice(2)
const redisUrl = process.env['REDIS_URL']

if (redisUrl === undefined) fail('REDIS_URL is not set')
else if (name !== 'all') await run(name, redisUrl)
else for (const each of ALL) if (process.exitCode === undefined) await run(each, redisUrl)

async function run(name: string, redisUrl: string): Promise<void> {
  const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined
  if (bench === undefined) return fail(`there is no benchmark '${name}'`)
  const input = parse(bench)
  if (typeof input === 'string') return fail(input)
  const keys = bench.deletesData ? await countKeys(redisUrl) : 0
  if (keys > 0) {
    return fail(
      `'${name}' deletes all data of the server, but REDIS_URL names one that has ${keys} keys: use an empty one, or leave out REDIS_URL with npm run bench`,
    )
  }
  for await (const { result, text } of bench.run({ redisUrl, ...input })) {
    console.log(input.json ? JSON.stringify(result) : text)
  }
}

/** Returns what the command line says, or what is wrong with it. */
function parse(bench: Bench) {
  const names = Object.keys(bench.options ?? {})
  const options = Object.fromEntries(names.map((option) => [option, { type: 'string' as const }]))
  try {
    const parsed = parseArgs({
      args: rest,
      allowPositionals: true,
      options: { ...options, json: { type: 'boolean' } },
      tokens: true,
    })
    const { positionals } = parsed
    const repeated = repeatedOption(parsed.tokens, options)
    if (repeated !== undefined) return `--${repeated} is specified twice`
    const values: Readonly<Record<string, string | boolean | undefined>> = parsed.values
    const accepts = bench.accepts ?? (({ length }) => length === 0)
    if (!accepts(positionals))
      return `expected ${bench.operands ?? 'no operand'}, got ${positionals.join(' ') || 'none'}`
    const numbers = new Map(names.map((option) => [option, Number(values[option] ?? bench.options?.[option])]))
    for (const [option, value] of numbers) {
      if (!(value > 0)) return `--${option} is '${values[option]}'; expected a number above 0`
    }
    return {
      operands: positionals,
      json: values['json'] === true,
      number: (option: string) => numbers.get(option) ?? 0,
    }
  } catch (error) {
    return (error as Error).message.split('. ')[0] ?? ''
  }
}

/** Counts the keys in all databases of the server. */
async function countKeys(url: string): Promise<number> {
  const redis = new Redis(url)
  try {
    const keyspace = await redis.info('keyspace')
    return [...keyspace.matchAll(/^db\d+:keys=(\d+)/gm)].reduce((sum, [, keys]) => sum + Number(keys), 0)
  } finally {
    redis.disconnect()
  }
}

function fail(reason: string): void {
  console.error(`bench: ${reason}\n${USAGE}`)
  process.exitCode = 2
}
