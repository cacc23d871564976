// Connections that the network has lost without closing them, on a single server and on a cluster, and replies that are only read late.

import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Log } from '@bullpen/contract'
import { amount, proxiedCluster } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Cluster, Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openBroker } from '../broker/broker.ts'
import { COMMAND_TIMEOUT_MS } from '../connection.ts'
import { leaderKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'
import { long, setup, silent } from '../setup.fixture.ts'
import { monitorCommands } from './command-monitor.fixture.ts'
import { CONNECTION_KINDS, connectionFunctions } from './connection-kinds.fixture.ts'
import { closeWhenSilent, OF_SUBSCRIBER } from './silence.ts'

/** The channel on which Node reports each socket that connects. */
const CLIENT_SOCKETS = 'net.client.socket'

it('every function that opens a connection to Redis is among the kinds that are tested here', () => {
  const kinds = Object.keys(CONNECTION_KINDS).map((kind) => kind.split('.')[0])
  expect(connectionFunctions()).toEqual(new Set(kinds))
})

interface Network {
  readonly url: string
  /** Reaches Redis without the proxies. */
  readonly direct: Commander
  silence(): number
}

async function server(): Promise<Network> {
  const proxy = await faultProxy(inject('redisUrl'))
  const direct = new Redis(inject('redisUrl'))
  onTestFinished(async () => {
    direct.disconnect()
    await proxy.close()
  })
  return { url: proxy.url, direct, silence: proxy.silence }
}

async function cluster(): Promise<Network> {
  const { url, nodes, proxies, end } = await proxiedCluster()
  const natMap = Object.fromEntries(
    proxies.map((proxy, i) => [new URL(proxy.url).host, { host: '127.0.0.1', port: nodes[i]?.port ?? 0 }]),
  )
  const direct = new Cluster(
    nodes.map((node) => ({ host: '127.0.0.1', port: node.port })),
    { natMap },
  )
  onTestFinished(async () => {
    direct.disconnect()
    await end()
  })
  return { url, direct, silence: () => proxies.reduce((sum, proxy) => sum + proxy.silence(), 0) }
}

describe.each([
  ['a single server', server],
  ['a cluster', cluster],
])('on %s', (_, open) => {
  it('a silent connection of every kind is closed and replaced, and works again', async () => {
    const { url, direct, silence } = await open()
    const responses = Object.entries(CONNECTION_KINDS).map(([kind, { open }]) => [kind, open(url, direct)] as const)
    await Promise.all(responses.map(([, response]) => eventually(() => response().then(() => true))))
    for (let time = 0; time < amount({ small: 1, full: 3 }); time++) {
      // A reply is under way on each connection.
      const pending = responses.map(([, response]) => response().catch(() => {}))
      expect(silence()).toBeGreaterThanOrEqual(responses.length - 1)
      await Promise.all(responses.map(([kind, response]) => eventuallyResponds(kind, response)))
      await Promise.all(pending)
    }
  })

  it('no number of errors of the socket of a connection of any kind ends the process', async () => {
    const { url, direct } = await open()
    const ports = new Set(Array.from(url.matchAll(/:(\d+)/g), ([, port]) => Number(port)))
    const sockets = openedSockets()
    const responses = Object.entries(CONNECTION_KINDS).map(([kind, { open }]) => [kind, open(url, direct)] as const)
    await Promise.all(responses.map(([kind, response]) => eventuallyResponds(kind, response)))
    // The proxy's own sockets have other ports.
    const own = [...sockets].filter(({ remotePort }) => ports.has(remotePort ?? 0))
    expect(own.length).toBeGreaterThanOrEqual(responses.length - 1)
    for (const socket of own) {
      for (const syscall of ['write', 'read', 'read']) {
        const error = new Error(`${syscall} ECONNRESET`)
        expect(() => socket.emit('error', error)).not.toThrow()
      }
      socket.destroy()
    }
    await Promise.all(responses.map(([kind, response]) => eventuallyResponds(kind, response)))
  })
})

/** Returns for how long this process has run, in ms, without the time for which its event loop was blocked. */
function runningTime(): () => number {
  const EVERY_MS = 50
  let runningMs = 0
  let at = performance.now()
  const timer = setInterval(() => {
    runningMs += Math.min(performance.now() - at, 2 * EVERY_MS)
    at = performance.now()
  }, EVERY_MS)
  onTestFinished(() => clearInterval(timer))
  return () => runningMs
}

/** Returns how much time has passed, in ms. The checks count no more than that, but on a busy machine more than the running time above. */
function passedTime(): () => number {
  const startedAt = performance.now()
  return () => performance.now() - startedAt
}

function openedSockets(): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  const opened = (message: unknown): void => void sockets.add((message as { readonly socket: Socket }).socket)
  subscribe(CLIENT_SOCKETS, opened)
  onTestFinished(() => void unsubscribe(CLIENT_SOCKETS, opened))
  return sockets
}

it('a connection of any kind is closed within 5 s if only this connection is silent', async () => {
  const sockets = openedSockets()
  const runningMs = runningTime()
  const closings = Object.entries(CONNECTION_KINDS).map(async ([kind, { open }]) => {
    const { url, direct, silence } = await server()
    const { port } = new URL(url)
    const own = () => [...sockets].filter(({ remotePort }) => remotePort === Number(port))
    const response = open(url, direct)
    // An idle connection of these kinds sends no PING, because nothing waits for it. The test therefore sends a command.
    const isAsked = kind === 'workerConnection' || kind === 'withConnection'
    if (!isAsked) await eventually(() => response().then(() => true))
    const pending = isAsked ? response().catch(() => {}) : undefined
    await eventually(() => own().length > 0)
    const closed = Promise.race(own().map((socket) => new Promise((resolve) => socket.once('close', resolve))))
    silence()
    const silentAt = runningMs()
    // The other connections of the process to the server work.
    const other = closeWhenSilent(new Redis(url))
    const use = setInterval(() => other.ping().catch(() => {}), 100)
    onTestFinished(() => {
      clearInterval(use)
      other.disconnect()
    })
    await closed
    const silentMs = runningMs() - silentAt
    await pending
    return [kind, silentMs] as const
  })
  const late = (await Promise.all(closings)).filter(([, silentMs]) => silentMs > 5_000)
  expect(late).toEqual([])
})

it('tasks start again within 5 s if only the connection over which a worker waits for them is silent', async () => {
  const sockets = openedSockets()
  const runningMs = runningTime()
  const { startPool, enqueue, settled, namespace } = await setup()
  const direct = new Redis(inject('redisUrl'))
  onTestFinished(() => direct.disconnect())
  await startPool()
  const waiting = Promise.withResolvers<number>()
  const monitor = await monitorCommands(direct, ([command = '', key = ''], source) => {
    const waits = command.toLowerCase() === 'bzpopmin' && key.includes(namespace)
    if (waits) waiting.resolve(Number(source.split(':').at(-1)))
  })
  onTestFinished(() => monitor.close())
  const port = await waiting.promise
  const silentAt = runningMs()
  // Redis still sends to the connection, but nothing arrives.
  for (const socket of sockets) if (socket.localPort === port) socket.pause()
  const tasks = await Promise.all([enqueue(long), enqueue(long)])
  for (const id of tasks) expect(await settled(id)).toMatchObject({ status: 'completed' })
  expect(runningMs() - silentAt).toBeLessThan(5_500)
})

it('a stall of Redis for less than 4 s closes no connection, whichever command each of them has sent', async () => {
  const proxy = await faultProxy(inject('redisUrl'))
  const closed: string[] = []
  const opened = (name: string): Redis => {
    const redis = closeWhenSilent(new Redis(proxy.url, { maxRetriesPerRequest: null }))
    redis.on('close', () => void closed.push(name))
    onTestFinished(() => redis.disconnect())
    return redis
  }
  onTestFinished(() => proxy.close())
  const [idle, blocking, busy] = ['idle', 'blocking', 'busy'].map(opened) as [Redis, Redis, Redis]
  await Promise.all([idle.ping(), blocking.ping(), busy.ping()])
  const fetched = blocking.bzpopmin(`t-${randomUUID()}`, 3)
  const passedMs = passedTime()
  // The time of the wait passes during the stall, and the idle connection has received nothing for as long as one may be silent.
  while (passedMs() < 2_700) await busy.ping().then(() => sleep(50))
  await busy.ping()
  const found = idle.exists(`t-${randomUUID()}`)
  proxy.cut()
  while (passedMs() < 5_000) await sleep(50)
  expect(closed).toEqual([])
  proxy.mend()
  expect(await Promise.all([fetched, found, busy.ping()])).toEqual([null, 0, 'PONG'])
  expect(closed).toEqual([])
})

it('a command that takes long to send is not taken for one to which Redis owes a reply', async () => {
  const sockets: Socket[] = []
  const listening = createServer((socket) => {
    sockets.push(socket)
    // A client that disconnects before it has read everything resets the connection.
    socket.on('error', () => {})
    // What is sent consists of zeros, and ends like every command.
    socket.on('data', (chunk) => void (chunk.at(-1) === 0x0a && socket.write('+OK\r\n')))
  }).listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const { port } = listening.address() as AddressInfo
  const options = { port, enableReadyCheck: false, disableClientInfo: true, maxRetriesPerRequest: null }
  const sending = closeWhenSilent(new Redis(options))
  expect(await sending.ping()).toBe('OK')
  const other = closeWhenSilent(new Redis(options))
  onTestFinished(async () => {
    for (const redis of [sending, other]) redis.disconnect()
    for (const socket of sockets) socket.destroy()
    await promisify(listening.close.bind(listening))()
  })
  let isClosed = false
  sending.on('close', () => {
    isClosed = true
  })
  const passedMs = passedTime()
  const until = async (ms: number): Promise<void> => {
    while (passedMs() < ms) await other.ping().then(() => sleep(50))
  }
  await until(2_700)
  sockets[0]?.pause()
  // More than the buffers of both sockets hold.
  const reply = sending.set('k', Buffer.alloc(64 * 1_024 * 1_024))
  await until(5_000)
  expect(isClosed).toBe(false)
  sockets[0]?.resume()
  expect(await reply).toBe('OK')
})

/** Repeats the call if it fails, as the callers of a producer do. */
async function eventuallyResponds(kind: string, response: () => Promise<unknown>): Promise<void> {
  await eventually(() => response().then(() => true)).catch((cause: unknown) => {
    throw new Error(`${kind} does not work again`, { cause })
  })
}

it('a process whose connections become silent under load says so once, and completes every task that it has accepted', async () => {
  const { url, silence } = await server()
  const lines: string[] = []
  let unreachableMs = 0
  const write = (fields: { readonly unreachableMs?: number }, message: string): void => {
    if ('check' in fields) return
    lines.push(message)
    unreachableMs += fields.unreachableMs ?? 0
  }
  const log: Log = { debug() {}, info: write, warn: write, error: write }
  const { startPool, enqueue, settled } = await setup({ redisUrl: url, commandTimeoutMs: COMMAND_TIMEOUT_MS, log })
  await startPool()
  const accepted: Awaited<ReturnType<typeof enqueue>>[] = []
  let isLoaded = true
  const load = (async () => {
    while (isLoaded) {
      await enqueue(long).then(
        (id) => void accepted.push(id),
        () => {},
      )
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  await eventually(() => accepted.length > 50)
  silence()
  const before = accepted.length
  await eventually(() => accepted.length > before + 50)
  isLoaded = false
  await load
  const statuses = await Promise.all(accepted.map(async (id) => (await settled(id))?.status))
  expect(statuses.filter((status) => status !== 'completed')).toEqual([])
  await eventually(() => lines.includes('redis connection restored'))
  expect(lines).toEqual(['redis connection lost', 'redis connection restored'])
  // The outage began with the last reply, and not when the connection was closed.
  expect(unreachableMs).toBeGreaterThan(2_500)
})

it('a subscriber to which the leader sends its beats sends no ping, and one without a leader pings', async () => {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const { channel } = leaderKeys(namespace)
  const [led, alone] = [channel, `${channel}:none`].map((each) => {
    const redis = closeWhenSilent(new Redis(inject('redisUrl')), OF_SUBSCRIBER)
    onTestFinished(() => redis.disconnect())
    let pings = 0
    let beats = 0
    const ping = redis.ping.bind(redis)
    redis.ping = (() => {
      pings++
      return ping()
    }) as Redis['ping']
    redis.on('message', () => void beats++)
    redis.subscribe(each).catch(() => {})
    return { pings: () => pings, beats: () => beats }
  })
  // A lease that is renewed more often than in production, because a busy machine may be late.
  const leaderTimes = { leaseMs: 60_000, renewMs: 250, roundMs: 60_000 }
  const common = {
    redisUrl: inject('redisUrl'),
    namespace,
    queues: ['rig'],
    sizeLimit: 10_000,
    log: silent,
    leaderTimes,
  }
  const broker = openBroker(common)
  onTestFinished(() => broker.close())
  await eventually(() => (led?.beats() ?? 0) > 0)
  const before = led?.pings() ?? 0
  await eventually(() => (alone?.pings() ?? 0) >= 2 && (led?.beats() ?? 0) >= 12)
  expect(led?.pings()).toBe(before)
})

it('a connection whose reply arrives while the event loop is blocked is not closed', async () => {
  const redis = closeWhenSilent(new Redis(inject('redisUrl')))
  onTestFinished(() => redis.disconnect())
  await redis.ping()
  const closed = new Promise((resolve) => redis.once('close', () => resolve('closed')))
  const reply = redis.ping()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6_000)
  await reply
  // Two checks later.
  const later = new Promise((resolve) => setTimeout(resolve, 1_100, 'open'))
  expect(await Promise.race([closed, later])).toBe('open')
})

it('a command may block for as long as it asks, and a connection without commands is not silent', async () => {
  const open = (): Redis => closeWhenSilent(new Redis(inject('redisUrl')), { afterMs: 2_000 })
  const [idle, blocked, replicating] = [open(), open(), open()]
  onTestFinished(() => [idle, blocked, replicating].forEach((redis) => void redis.disconnect()))
  let closings = 0
  for (const redis of [idle, blocked, replicating]) redis.on('close', () => closings++)
  await idle.ping()
  expect(await Promise.all([blocked.bzpopmin('t-never', 5), replicating.wait(9, 5_000)])).toEqual([null, 0])
  expect(closings).toBe(0)
})
