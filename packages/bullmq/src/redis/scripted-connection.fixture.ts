// A Redis of a test's script that clients reach without a network, and time that passes only as the test says.
import { Duplex } from 'node:stream'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { type CheckTimes, createSilenceWatch, type SilenceOptions } from './silence.ts'

/** Lets the streams and the clients pass on what has been written. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate)
}

export interface VirtualTime extends CheckTimes {
  /** Lets time pass. Whatever is due runs at its own time. */
  advance(ms: number): Promise<void>
  /** Lets time pass in which nothing of this process runs. Everything that is due runs once afterwards. */
  block(ms: number): Promise<void>
}

export function virtualTime(): VirtualTime {
  let now = 0
  const timers = new Set<{ at: number; readonly ms: number; readonly run: () => void }>()
  const runDue = async (): Promise<void> => {
    for (const timer of [...timers].filter(({ at }) => at <= now)) {
      timer.at = now + timer.ms
      if (timers.has(timer)) timer.run()
      await settled()
    }
  }
  return {
    now: () => now,
    every(ms, run) {
      const timer = { at: now + ms, ms, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    async advance(ms) {
      const until = now + ms
      await settled()
      for (;;) {
        const next = Math.min(until, ...Array.from(timers, ({ at }) => at))
        now = Math.max(now, next)
        await runDue()
        if (now >= until && ![...timers].some(({ at }) => at <= now)) return
      }
    },
    async block(ms) {
      now += ms
      await settled()
      await runDue()
    },
  }
}

export interface ScriptedConnection {
  readonly redis: Redis
  /** The names of the commands that the server has received since the connection was opened. */
  readonly commands: string[]
  /** When and why the connection was closed. Undefined as long as it is open. */
  closed(): { readonly at: number; readonly error: Error | undefined } | undefined
  /** The server no longer replies, until `answer` is called. */
  hang(): void
  /** The server replies to everything that it has received, and to what follows. */
  answer(): void
  /** The server ends the wait of a command that blocks. */
  endWait(): void
  /** The server sends a message to a subscriber. */
  publish(): void
  /** The network takes no more bytes of the client. */
  takeNothing(): void
}

const REPLIES: Readonly<Record<string, string>> = {
  ping: '+PONG\r\n',
  bzpopmin: '*-1\r\n',
  wait: ':0\r\n',
  subscribe: '*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n',
}
const BLOCKING = ['bzpopmin', 'wait']

/** Returns a function that opens a connection, which is watched, to one of several servers. */
export function scriptedRedis(time: VirtualTime) {
  const watch = createSilenceWatch(time)

  return async (options: SilenceOptions = {}, port = 1): Promise<ScriptedConnection> => {
    let isHung = false
    let isWaitOver = false
    let takes = true
    let bytesRead = 0
    const commands: string[] = []
    const owed: string[] = []

    const stream = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        for (const [, name = ''] of chunk.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
          commands.push(name.toLowerCase())
          owed.push(name.toLowerCase())
        }
        reply()
        if (takes) done()
      },
    })
    const receive = (text: string): void => {
      if (stream.destroyed) return
      bytesRead += text.length
      stream.push(text)
    }
    const reply = (): void => {
      for (let [name] = owed; name !== undefined && !isHung; [name] = owed) {
        if (BLOCKING.includes(name) && !isWaitOver) return
        isWaitOver = false
        owed.shift()
        receive(REPLIES[name] ?? '+OK\r\n')
      }
    }
    Object.defineProperty(stream, 'bytesRead', { get: () => bytesRead })
    const socket = Object.assign(stream, { setNoDelay() {}, setKeepAlive() {}, setTimeout() {} })

    /** ioredis calls it with `new`. */
    function Connector() {
      return { connect: async () => socket, check: () => true, disconnect: () => stream.end() }
    }
    const client = {
      Connector: Connector as never,
      port,
      retryStrategy: null,
      maxRetriesPerRequest: null,
      enableReadyCheck: false,
      disableClientInfo: true,
    }
    const redis = new Redis(client)
    let closed: { readonly at: number; readonly error: Error | undefined } | undefined
    redis.on('error', () => {})
    redis.on('close', () => {
      closed ??= { at: time.now(), error: stream.errored ?? undefined }
    })
    watch.follow(redis, options)
    onTestFinished(() => redis.disconnect())
    await settled()
    commands.length = 0
    return {
      redis,
      commands,
      closed: () => closed,
      hang() {
        isHung = true
      },
      answer() {
        isHung = false
        reply()
      },
      endWait() {
        isWaitOver = true
        reply()
      },
      publish: () => receive('*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n'),
      takeNothing() {
        takes = false
      },
    }
  }
}
