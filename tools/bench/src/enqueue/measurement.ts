// Measures what one side needs for each task: time, CPU time, and Redis's CPU time.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Part } from '../measuring/part.ts'

export interface Figures {
  /** Tasks per second. */
  readonly rate: number
  /** The CPU time of the process that enqueues, in µs per task. */
  readonly processCpu: number
  /** The CPU time of Redis, in µs per task. */
  readonly redisCpu: number
  /** The 99th percentile of the response times, in ms. */
  readonly p99Ms: number
  /** How many scripts Redis ran for each task. Every script takes one round trip. */
  readonly scripts: number
}

export interface Subject {
  /** The process that enqueues tasks. */
  readonly enqueuing: Pick<Part<unknown>, 'ask'>
  /** The process that generates the load, which may be the same process. */
  readonly load: Pick<Part<unknown>, 'ask'>
  readonly redis: Redis
  /** How long the load runs before it is measured. */
  readonly warmUpMs: number
  readonly measureMs: number
  /** The greatest share of the requests that may be refused. Defaults to 0.01. */
  readonly mostRefused?: number | undefined
}

/** How often the load may have been refused, and never accepted, at the end of a period of `measureMs` before the measurement fails. */
const REFUSED_PERIODS = 5

/**
 * Measures a subject whose load is running. Goes on until a request has been accepted, which may take longer on a busy machine. Such a
 * machine may also refuse some requests. The CPU times include them, so the measurement fails if too many were refused.
 */
export async function measure({
  enqueuing,
  load,
  redis,
  warmUpMs,
  measureMs,
  mostRefused = 0.01,
}: Subject): Promise<Figures> {
  const read = async () => ({ cpu: await enqueuing.ask('cpu'), ...(await readRedis(redis)) })
  await sleep(warmUpMs)
  await load.ask('begin')
  const before = await read()
  for (let period = 1; ; period++) {
    await sleep(measureMs)
    const after = await read()
    const { tasks, requests, refused, lastRefusal, seconds, p99Ms } = await load.ask('end')
    if (tasks === 0 && (refused === 0 || period < REFUSED_PERIODS)) continue
    if (refused > mostRefused * (requests + refused))
      throw new Error(
        `the server refused ${refused} of ${requests + refused} requests, the last one with:\n${lastRefusal}`,
      )
    if (tasks === 0) continue
    return {
      rate: tasks / seconds,
      processCpu: (after.cpu - before.cpu) / tasks,
      redisCpu: (after.redisCpu - before.redisCpu) / tasks,
      p99Ms,
      scripts: (after.scripts - before.scripts) / tasks,
    }
  }
}

/** Reads Redis's CPU time in µs, and how many scripts it has run. */
async function readRedis(redis: Redis): Promise<{ readonly redisCpu: number; readonly scripts: number }> {
  const [cpu, commands] = await Promise.all([redis.info('cpu'), redis.info('commandstats')])
  const seconds = ['user', 'sys'].map((kind) => Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(cpu)?.[1]))
  const scripts = ['eval', 'evalsha'].map((name) =>
    Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(commands)?.[1] ?? 0),
  )
  return { redisCpu: sum(seconds) * 1e6, scripts: sum(scripts) }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
