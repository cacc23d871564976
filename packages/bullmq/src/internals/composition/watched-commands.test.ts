// What the composed scripts rely on in the texts of BullMQ's: which commands change a divided set, or add or delete a job, and how
// the calls are written. A new version of BullMQ that does one of these things in another way fails here.
import { expect, it } from 'vitest'
import { WATCHED, type WatchedCommand } from '../status/status-index.ts'
import { bullmqScripts, COMPOSED, callOf } from './composed-scripts.ts'

/** Commands that change no sorted set and delete no key, as BullMQ writes them. */
const OTHER_COMMANDS = [
  ['EXISTS', 'GET', 'HEXISTS', 'HGET', 'HGETALL', 'HMGET', 'LLEN', 'LPOS', 'LRANGE', 'PTTL', 'SCARD'],
  ['SISMEMBER', 'SMEMBERS', 'ZCARD', 'ZCOUNT', 'ZRANGE', 'ZRANGEBYLEX', 'ZRANGEBYSCORE', 'ZREVRANGE'],
  ['ZREVRANGEBYSCORE', 'ZSCORE', 'HDEL', 'HINCRBY', 'HSET', 'INCR', 'LPUSH', 'LREM', 'LTRIM'],
  ['PERSIST', 'PEXPIRE', 'RPOPLPUSH', 'RPUSH', 'SADD', 'SET', 'SREM', 'XADD', 'XTRIM', 'RPOP'],
].flat()

const FINISHED = /^(["'])finishedOn\1$/

/** The keys that BullMQ deletes on their own: schedulers and deduplication keys. */
const SINGLE_DELETIONS = [
  'KEYS[1] .. ":" .. jobSchedulerId',
  'deduplicationKey',
  'parentPrefix .. "de:" .. debounceId',
  'parentPrefix .. "de:" .. parentAttributes[2]',
  'prefixKey .. "dn:" .. deduplicationId',
  'schedulerKey',
]

interface Call {
  readonly script: string
  /** As written: a literal in quotes, or an expression. */
  readonly command: string
  readonly args: readonly string[]
}

/** Without comments and with the calls of `redis.call`, however they are written. */
function callsOf(script: string, text: string): Call[] {
  const code = text.replaceAll(/--\[\[[\s\S]*?\]\]/g, '').replaceAll(/--.*$/gm, '')
  return [...code.matchAll(/\b(?:rcall|redis\.p?call|(?<![.\w])call)\s*\(/g)].map(({ index, 0: { length } }) => {
    const [command = '', ...args] = splitArguments(code, index + length)
    return { script, command, args }
  })
}

/** The arguments of a call, from the position after its parenthesis. */
function splitArguments(code: string, from: number): string[] {
  const args = ['']
  let depth = 0
  for (let at = from; at < code.length; at++) {
    const char = code.charAt(at)
    if (char === ')' && depth === 0) break
    if ('([{'.includes(char)) depth++
    if (')]}'.includes(char)) depth--
    if (char === ',' && depth === 0) args.push('')
    else args[args.length - 1] += char
  }
  return args.map((arg) => arg.trim())
}

const composed = bullmqScripts().filter(({ name }) => COMPOSED.has(name))
const calls = composed.flatMap(({ name, content }) => callsOf(name, content))
const literal = (text: string): string | undefined => /^(["'])(.*)\1$/.exec(text)?.[2]
const of = (command: WatchedCommand): Call[] => calls.filter((call) => literal(call.command) === command)
const unique = (values: readonly (string | undefined)[]): unknown[] => [...new Set(values)].toSorted()

it('every command of a composed script is one that the index watches or one that it does not need to watch', () => {
  const known = new Set<string>([...WATCHED, ...OTHER_COMMANDS])
  const unknown = calls.filter(({ command }) => command !== 'pushCmd' && !known.has(literal(command) ?? command))
  expect(unknown).toEqual([])
})

it('the only command that is held in a variable adds to a list', () => {
  const texts = composed.map(({ content }) => content).join('\n')
  expect(unique([...texts.matchAll(/\bpushCmd\s*=\s*(.+)$/gm)].map(([, value]) => value))).toEqual([
    `opts['lifo'] and 'RPUSH' or 'LPUSH'`,
  ])
  const parameters = [...texts.matchAll(/addJobInTargetList\(\s*\w+,\s*\w+,\s*([^,]+),/g)].map(([, given]) => given)
  expect(unique(parameters)).toEqual(['pushCmd'])
})

it('BullMQ names `redis.call` rcall, so that every watched command is replaced in the composed scripts', () => {
  const texts = composed.map(({ content }) => content.replaceAll('local rcall = redis.call', ''))
  // Another name for Redis's function, or the function itself as an argument.
  expect(texts.flatMap((text) => text.match(/redis\.call|=\s*rcall\s*$|[(,]\s*rcall\s*[,)]/gm) ?? [])).toEqual([])
  const left = [...COMPOSED].flatMap(([name, { lua }]) =>
    WATCHED.filter((command) => callOf(command).test(lua)).map((command) => `${command} in ${name}`),
  )
  expect(left).toEqual([])
})

it('ZADD has a score and one member, and no options', () => {
  expect(of('ZADD').filter(({ args }) => args.length !== 3)).toEqual([])
  const scores = unique(of('ZADD').map(({ args }) => args[1])) as string[]
  expect(scores.filter((score) => literal(score) !== undefined)).toEqual([])
})

it('markerKey is always the marker, which gets one of two members', () => {
  const ofMarker = calls.filter(({ args }) => args[0] === 'markerKey')
  expect(unique(ofMarker.map(({ command, args }) => [literal(command), ...args.slice(1)].join(' ')))).toEqual([
    'ZADD 0 "0"',
    'ZADD nextTimestamp "1"',
  ])
})

it('ZREM has one member, or members that are no longer needed', () => {
  expect(of('ZREM').filter(({ args }) => args.length !== 2)).toEqual([])
})

it('DEL deletes a job only together with its log, and no divided set', () => {
  const several = of('DEL').filter(({ args }) => args.length > 1)
  const single = of('DEL').filter(({ args }) => args.length === 1)
  const jobs = several.filter(({ args }) => args[0] === 'jobKey')
  expect(unique(jobs.map(({ args }) => args[1]))).toEqual([`jobKey .. ':logs'`])
  expect(several.filter(({ args }) => args[0] !== 'jobKey')).toEqual([])
  expect(unique(single.map(({ args }) => args[0]))).toEqual(SINGLE_DELETIONS)
})

it("a job's name and data are written only when the job is added", () => {
  const names = of('HMSET').filter(({ args }) => args[1] === '"name"')
  expect(unique(names.filter(({ args }) => args[3] === '"data"').map(({ args }) => args[0]))).toEqual(['jobIdKey'])
  // A job scheduler has a name, and other fields between its name and its data.
  expect(unique(names.filter(({ args }) => args[3] !== '"data"').map(({ args }) => args[0]))).toEqual(['schedulerKey'])
  const sets = calls.filter(({ command }) => literal(command) === 'HSET')
  expect(sets.filter(({ args }) => args[1] === '"name"' || args[1] === "'name'").map(({ args }) => args[0])).toEqual([])
})

it('the data of a job is written only when it is added', () => {
  const isData = (arg: string): boolean => literal(arg) === 'data'
  const writes = calls.filter(({ command, args }) => /^["']H(M?SET|SETNX)["']$/.test(command) && args.some(isData))
  expect(unique(writes.map(({ command, args }) => `${literal(command)} ${args[0]}`))).toEqual(['HMSET jobIdKey'])
})

it('no job that has ended returns to its queue', () => {
  const deletions = calls.filter(({ command }) => literal(command) === 'HDEL')
  expect(deletions.filter(({ args }) => args.some((arg) => FINISHED.test(arg)))).toEqual([])
})
