// Connections of all kinds that the network has lost without closing them, on a single server and on a cluster. silence.test.ts tests after
// how long they are closed.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Log } from '@bullpen/contract'
import { amount, proxiedCluster } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Cluster, Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { COMMAND_TIMEOUT_MS } from '../connection.ts'
import type { Commander } from '../scripts/script.ts'
import { long, setup } from '../setup.fixture.ts'
import { monitorCommands } from './command-monitor.fixture.ts'
import { CONNECTION_KINDS, connectionFunctions } from './connection-kinds.fixture.ts'
import { closeWhenSilent } from './silence.ts'

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

function openedSockets(): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  const opened = (message: unknown): void => void sockets.add((message as { readonly socket: Socket }).socket)
  subscribe(CLIENT_SOCKETS, opened)
  onTestFinished(() => void unsubscribe(CLIENT_SOCKETS, opened))
  return sockets
}

it('a connection of any kind is closed if only this connection is silent', async () => {
  const sockets = openedSockets()
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
    // The other connections of the process to the server work.
    const other = closeWhenSilent(new Redis(url))
    const use = setInterval(() => other.ping().catch(() => {}), 100)
    onTestFinished(() => {
      clearInterval(use)
      other.disconnect()
    })
    await closed
    await pending
  })
  await Promise.all(closings)
})

it('tasks start again if only the connection over which a worker waits for them is silent', async () => {
  const sockets = openedSockets()
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
  // Redis still sends to the connection, but nothing arrives.
  for (const socket of sockets) if (socket.localPort === port) socket.pause()
  const tasks = await Promise.all([enqueue(long), enqueue(long)])
  for (const id of tasks) expect(await settled(id)).toMatchObject({ status: 'completed' })
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
