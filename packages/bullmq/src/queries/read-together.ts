// Reads several values from Redis, all as of the same moment.
import type { ChainableCommander } from 'ioredis'
import { pairsOf } from '../scripts/pairs.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { readTogetherScript } from '../store/scripts.ts'

type Command = readonly [name: string, key: string, ...words: readonly string[]]

/** The commands that can be sent together. Each method adds one command. */
export interface Reads {
  exists(key: string): Reads
  /** Adds a read whose result is an object, which is empty if the hash does not exist. */
  hgetall(key: string): Reads
  hget(key: string, field: string): Reads
  hmget(key: string, ...fields: readonly string[]): Reads
  hlen(key: string): Reads
  hvals(key: string): Reads
  llen(key: string): Reads
  xlen(key: string): Reads
  /** Adds a read whose result is a list with the first entry of a stream. */
  firstEntry(key: string): Reads
  zcard(key: string): Reads
  /** Adds a read whose result is the number of members with a score of more than `above`. */
  zcountAbove(key: string, above: number): Reads
  zscore(key: string, member: string): Reads
}

function collect(commands: Command[]): Reads {
  const add = (...command: Command): Reads => {
    commands.push(command)
    return reads
  }
  const reads: Reads = {
    exists: (key) => add('EXISTS', key),
    hgetall: (key) => add('HGETALL', key),
    hget: (key, field) => add('HGET', key, field),
    hmget: (key, ...fields) => add('HMGET', key, ...fields),
    hlen: (key) => add('HLEN', key),
    hvals: (key) => add('HVALS', key),
    llen: (key) => add('LLEN', key),
    xlen: (key) => add('XLEN', key),
    firstEntry: (key) => add('XRANGE', key, '-', '+', 'COUNT', '1'),
    zcard: (key) => add('ZCARD', key),
    zcountAbove: (key, above) => add('ZCOUNT', key, `(${above}`, '+inf'),
    zscore: (key, member) => add('ZSCORE', key, member),
  }
  return reads
}

/**
 * Runs several reads, whose keys must share a hash slot, in one script. Takes one round trip. Rejects if any of the commands
 * fails.
 */
export async function readTogether(redis: Commander, addReads: (reads: Reads) => void): Promise<unknown[]> {
  const commands: Command[] = []
  addReads(collect(commands))
  const first = commands[0]?.[1]
  if (first === undefined) return []
  const words = commands.flatMap((command) => [command.length, ...command])
  const replies = await runScript(redis, readTogetherScript, { first }, {}, words)
  return replies.map((reply, i) =>
    commands[i]?.[0] === 'HGETALL' ? Object.fromEntries(pairsOf(reply as string[])) : reply,
  )
}

/** Returns a pipeline's replies, or throws the first error among them. */
export function answersOf(results: Awaited<ReturnType<ChainableCommander['exec']>>): unknown[] {
  return (results ?? []).map(([error, answer]) => {
    if (error !== null) throw error
    return answer
  })
}
