// Every kind of connection to Redis, each with what uses it, for tests that take the network away from it.
import { randomUUID } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import {
  addressIn,
  blockingConnection,
  producerConnection,
  replicationConnection,
  skewConnection,
  subscriberConnection,
  workerConnection,
} from '../connection.ts'
import { withConnection } from '../examination/connection.ts'
import type { Commander } from '../scripts/script.ts'
import { silent } from '../setup.fixture.ts'
import { BLOCK_SECONDS } from '../store/backend.ts'
import { renewalConnection } from './renewal-connection.ts'
import { openStreamFollower } from './stream-follower.ts'

export interface ConnectionKind {
  /** Opens a connection, and returns a function that resolves once Redis has responded over it. It may also reject. */
  open(url: string, direct: Commander): () => Promise<unknown>
}

const key = (): string => `t-${randomUUID().slice(0, 12)}`

const commands =
  (connect: (url: string) => Commander): ConnectionKind['open'] =>
  (url) => {
    const redis = connect(url)
    onTestFinished(() => redis.disconnect())
    const used = key()
    return () => redis.exists(used)
  }

/** Resolves when the message that `send` sends has arrived. It is sent again and again, because it may be lost. */
async function arrival(send: () => Promise<unknown>, arrived: () => number): Promise<void> {
  const before = arrived()
  while (arrived() === before) {
    await send()
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** By the function that opens the connection. */
export const CONNECTION_KINDS: Readonly<Record<string, ConnectionKind>> = {
  producerConnection: { open: commands((url) => producerConnection(url, silent)) },
  replicationConnection: { open: commands((url) => replicationConnection(url, silent)) },
  workerConnection: { open: commands((url) => workerConnection(url, silent)) },
  skewConnection: { open: commands(skewConnection) },
  renewalConnection: { open: commands((url) => renewalConnection(addressIn(url))) },
  'workerConnection.duplicate': {
    open(url, direct) {
      // BullMQ duplicates a Worker's connection, and blocks in BZPOPMIN.
      const redis = workerConnection(url, silent)
      const blocking = (redis as { duplicate(): Commander }).duplicate()
      const marker = key()
      onTestFinished(() => {
        redis.disconnect()
        blocking.disconnect()
      })
      blocking.on('error', () => {})
      let fetched = 0
      const fetch = async (): Promise<void> => {
        for (;;) if ((await blocking.bzpopmin(marker, BLOCK_SECONDS)) !== null) fetched++
      }
      fetch().catch(() => {})
      return () =>
        arrival(
          () => direct.zadd(marker, 1, key()),
          () => fetched,
        )
    },
  },
  blockingConnection: {
    open(url, direct) {
      const redis = workerConnection(url, silent)
      const follower = openStreamFollower({ redis, connect: () => blockingConnection(url, silent), log: silent })
      onTestFinished(() => {
        follower.close()
        redis.disconnect()
      })
      const stream = key()
      let read = 0
      follower.follow(stream, '0-0', { onEntries: () => void read++, onMissed() {} }, 100)
      return () =>
        arrival(
          () => direct.xadd(stream, '*', 'n', '1'),
          () => read,
        )
    },
  },
  subscriberConnection: {
    open(url, direct) {
      const redis = subscriberConnection(url, silent)
      onTestFinished(() => redis.disconnect())
      const channel = key()
      let received = 0
      redis.on('ready', () => void redis.subscribe(channel).catch(() => {}))
      redis.on('message', () => void received++)
      return () =>
        arrival(
          () => direct.publish(channel, ''),
          () => received,
        )
    },
  },
  withConnection: {
    // An examination has one connection, and gives up with it.
    open: (url) => () =>
      withConnection(url, async (redis) => {
        for (let i = 0; i < 20; i++) {
          await redis.exists('t-examined')
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
      }),
  },
}

const SOURCES = join(import.meta.dirname, '../../..')

/** What opens a connection. */
const OPENS = /(?<!function )\b(?:openClient|openServer|openProducer|openClusterSubscriber|new Redis|new Cluster)\(/g
/** The functions that only the others call. */
const INNER: ReadonlySet<string> = new Set(['openClient', 'openServer', 'openProducer', 'openClusterSubscriber'])

/** Returns the names of the functions in the packages' sources that open connections to Redis. */
export function connectionFunctions(): ReadonlySet<string> {
  const files = globSync('*/src/**/*.ts', { cwd: SOURCES }).filter((file) => !/\.(?:test|fixture)\.ts$/.test(file))
  const names = files.flatMap((file) => {
    const text = readFileSync(join(SOURCES, file), 'utf8')
    return Array.from(text.matchAll(OPENS), ({ index }) => {
      const declared = text.slice(0, index).matchAll(/^(?:export )?(?:async )?function (\w+)/gm)
      return Array.from(declared).at(-1)?.[1] ?? file
    })
  })
  return new Set(names.filter((name) => !INNER.has(name)))
}
