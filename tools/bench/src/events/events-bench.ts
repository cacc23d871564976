// Measures how long an event takes from Redis to its readers, with many readers of one API process, and what they cost that process.
//
// Tasks end at a steady rate. Some of them are watched by one reader each, and others are waited for. A few readers receive the events of
// the whole queue, and one more never reads what it has asked for. An event's id contains the time of its commit by Redis's clock, which
// is this machine's.
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBroker } from '@bullpen/bullmq'
import type { TaskId } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { Redis } from 'ioredis'
import { untilReachable } from '../measuring/reachable.ts'
import { brief, catalogue, type EventProcess, type Usage } from './event-process.ts'

export interface EventsOptions {
  readonly redisUrl: string
  /** How many readers watch a task each. The same number of callers waits for a task each. */
  readonly readers: number
  /** How many readers receive the events of the whole queue. */
  readonly queueReaders: number
  /** How many tasks end per second. */
  readonly rate: number
  readonly seconds: number
}

interface Latency {
  readonly samples: number
  /** In ms. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface EventsResult extends Omit<EventsOptions, 'redisUrl'> {
  /** From the commit of a task's end to the reader of the task, to a reader of its queue, and to a caller that waits for it. */
  readonly taskReaders: Latency
  readonly ofQueue: Latency
  readonly waiters: Latency
  /** The share of one core that the API process used, in percent. */
  readonly apiCpuPercent: number
  readonly apiRssMiB: number
  /** The API process's memory before any reader had connected. */
  readonly apiRssBeforeMiB: number
  /** Connections on which the API process follows streams. */
  readonly followers: number
}

const PERIOD_MS = 20
const SETTLE_MS = 2_000

export async function* benchEvents(options: EventsOptions): AsyncGenerator<EventsResult> {
  const { redisUrl, readers, queueReaders, rate, seconds } = options
  const namespace = `bench-${randomUUID().slice(0, 8)}`
  const key = randomUUID()
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const broker = openBroker({
    redisUrl,
    namespace,
    queues: catalogue.queues,
    sizeLimit: 10_000,
    leads: false,
    log: silent,
  })
  const redis = new Redis(redisUrl)
  const processes: ChildProcess[] = []
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
  const start = async (role: EventProcess['role']): Promise<[ChildProcess, string]> => {
    const given: EventProcess = { role, redisUrl, namespace, key }
    const child = fork(join(import.meta.dirname, 'event-process.ts'), [JSON.stringify(given)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    processes.push(child)
    const [message] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [undefined])])
    if (message === undefined) throw new Error(`the ${role} ended before it was ready`)
    return [child, String(message)]
  }
  const enqueue = async (delayMs?: number): Promise<TaskId> => {
    const now = Date.now()
    const id = createTaskId(brief.queue, now, randomBytes(ID_RANDOM_BYTES))
    const call = delayMs === undefined ? {} : { delay: `${Math.round(delayMs)}ms` as const }
    await broker.enqueue(newTask(brief, {}, call, { id, enqueuedAt: now, correlationId: undefined, caller: 'only' }))
    return id
  }
  try {
    await untilReachable(broker)
    const [[api, url]] = await Promise.all([start('api'), start('worker')])
    const before = await usageOf(api)
    const headers = { authorization: `Bearer ${key}` }
    const get = (path: string): Promise<IncomingMessage> =>
      new Promise((resolve, reject) => {
        request(`${url}${path}`, { agent, headers }, resolve).on('error', reject).end()
      })

    // The watched tasks end while the load lasts, one after the other.
    const connecting = 2_000 + readers * 4
    const due = (n: number): number => connecting + SETTLE_MS + ((n + 0.5) / readers) * seconds * 1_000
    const [watched, awaited] = await Promise.all([
      Promise.all(Array.from({ length: readers }, (_, n) => enqueue(due(n)))),
      Promise.all(Array.from({ length: readers }, (_, n) => enqueue(due(n)))),
    ])
    const [ofTask, ofQueue, ofWaiters]: [number[], number[], number[]] = [[], [], []]
    const read = async (path: string, latencies: number[]): Promise<void> => {
      const response = await get(path)
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const now = Date.now()
        const blocks = (text + chunk).split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) {
          if (block.includes('\nevent: ended\n')) latencies.push(now - Number.parseInt(block.slice('id: '.length), 10))
        }
      })
      response.on('error', () => {})
    }
    const wait = async (id: TaskId): Promise<void> => {
      for (;;) {
        const chunks: string[] = []
        for await (const chunk of await get(`/v1/tasks/${id}?wait=30`)) chunks.push(String(chunk))
        const now = Date.now()
        const { status, endedAt } = JSON.parse(chunks.join('')) as {
          readonly status: string
          readonly endedAt?: string
        }
        if (status === 'completed') {
          ofWaiters.push(now - Date.parse(endedAt ?? ''))
          return
        }
      }
    }
    await Promise.all(Array.from({ length: queueReaders }, () => read('/v1/queues/events/events', ofQueue)))
    const idle = connect(Number(new URL(url).port), '127.0.0.1').pause()
    idle.on('error', () => {})
    idle.write(`GET /v1/queues/events/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    for (let from = 0; from < readers; from += 50) {
      await Promise.all(watched.slice(from, from + 50).map((id) => read(`/v1/tasks/${id}/events`, ofTask)))
    }
    const waiting = Promise.all(awaited.map(wait))
    await sleep(SETTLE_MS)

    ofQueue.length = 0
    const first = await usageOf(api)
    const startedAt = performance.now()
    let enqueued = 0
    const pending = new Set<Promise<unknown>>()
    while (performance.now() - startedAt < seconds * 1_000) {
      const wanted = ((performance.now() - startedAt) / 1_000) * (rate - (2 * readers) / seconds)
      for (; enqueued < wanted; enqueued++) {
        const adding = enqueue().catch(() => {})
        pending.add(adding)
        void adding.then(() => pending.delete(adding))
      }
      await sleep(PERIOD_MS)
    }
    const elapsedMs = performance.now() - startedAt
    const last = await usageOf(api)
    const clients = String(await redis.client('LIST')).split('\n')
    await Promise.all(pending)
    await Promise.race([waiting, sleep(30_000)])
    await sleep(500)
    idle.destroy()
    yield {
      ...{ readers, queueReaders, rate, seconds },
      taskReaders: latencyOf(ofTask),
      ofQueue: latencyOf(ofQueue),
      waiters: latencyOf(ofWaiters),
      apiCpuPercent: Math.round((last.cpuMicros - first.cpuMicros) / 10 / elapsedMs),
      apiRssMiB: Math.round(last.rssBytes / 2 ** 20),
      apiRssBeforeMiB: Math.round(before.rssBytes / 2 ** 20),
      followers: clients.filter((line) => line.includes(' cmd=xread ')).length,
    }
  } finally {
    agent.destroy()
    for (const child of processes) {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await ended
    }
    await broker.close()
    await redis.flushdb()
    redis.disconnect()
  }
}

async function usageOf(child: ChildProcess): Promise<Usage> {
  const answered = once(child, 'message')
  child.send('usage')
  const [usage] = (await answered) as [Usage]
  return usage
}

function latencyOf(samples: readonly number[]): Latency {
  const sorted = samples.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { samples: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) }
}

export function describeEvents(result: EventsResult): string {
  const { readers, queueReaders, rate, seconds, apiCpuPercent, apiRssMiB, apiRssBeforeMiB, followers } = result
  const line = (label: string, { samples, p50, p99, max }: Latency): string =>
    `  ${label.padEnd(40)}p50 ${p50} ms, p99 ${p99} ms, max ${max} ms (${samples} samples)`
  return [
    `events: ${readers} readers of a task each, ${queueReaders} of the queue, 1 that does not read, ${readers} waiters, ${rate} tasks a second, ${seconds} s`,
    line('commit to the reader of the task', result.taskReaders),
    line('commit to a reader of the queue', result.ofQueue),
    line('commit to a caller that waits', result.waiters),
    `  the API: ${apiCpuPercent} % of a core, ${apiRssMiB} MiB (${apiRssBeforeMiB} MiB without readers), ${followers} connections that follow streams`,
  ].join('\n')
}
