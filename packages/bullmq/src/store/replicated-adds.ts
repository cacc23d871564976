// Adds tasks, and waits until a replica has them (Redis's WAIT).
//
// WAIT covers what its own connection has written on the server that replies, and blocks the connection. These adds therefore have a
// connection of their own, on which the adds and the WAIT are sent together. It never sends a command again on another connection, where a
// WAIT would cover nothing: after a failover, it would acknowledge what the new primary has never received.
import { hash } from 'node:crypto'
import { BullpenError } from '@bullpen/contract'
import { settlesWithin, withTimeout } from '@bullpen/engine/node'
import { Command, type Redis } from 'ioredis'
import { COMMAND_TIMED_OUT } from '../redis/command-timeouts.ts'
import { isCluster, keyOfNode } from '../redis/redis-client.ts'
import type { Commander } from '../scripts/script.ts'
import type { AddReply } from './add.ts'
import { addScript } from './scripts.ts'

/** What the script has replied, and why no replica is known to have what it has stored, or undefined if one has it. */
export interface ReplicatedReply {
  readonly replies: readonly AddReply[]
  readonly unconfirmed: Error | undefined
}

/** The tasks of one call, as arguments of the script `add`. */
interface Adds {
  /** The prefix of the queue's keys. */
  readonly base: string
  readonly isAll: '' | '1'
  readonly args: readonly string[]
}

export interface ReplicatedAdds {
  /**
   * Takes one round trip and the time until a replica has confirmed the write, at most `waitMs`. Calls that come meanwhile share the next
   * round trip, so while no replica confirms anything, a call takes up to twice that time. Other connections are not delayed. The first
   * call opens the connection, and the first one to a server that does not know the script takes two round trips more.
   */
  readonly send: (adds: Adds) => Promise<ReplicatedReply>
  close(): void
}

export interface ReplicationOptions {
  /** Opens a connection that never sends a command twice. */
  readonly connect: () => Commander
  readonly waitMs: number
  /** How long Redis may take to reply, besides the wait for a replica, in ms. */
  readonly timeoutMs: number
}

interface Call extends Adds {
  /** Whether an earlier try may have reached the script, which must then look for what it stored. */
  readonly isRepeat: boolean
  readonly resolve: (reply: ReplicatedReply) => void
  readonly reject: (error: unknown) => void
}

const SHA = hash('sha1', addScript.lua)
/** How long the key exists that makes Redis write something, in ms. */
const TOUCH_MS = 1_000

export function openReplicatedAdds({ connect, waitMs, timeoutMs }: ReplicationOptions): ReplicatedAdds {
  const gatherers = new WeakMap<Redis, (call: Call) => void>()
  const timedOut = (): Error => new Error(COMMAND_TIMED_OUT)
  let opened: Commander | undefined
  let opening: Promise<unknown> | undefined

  async function nodeOf(base: string): Promise<Redis> {
    if (opened === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>()
      opened = connect()
      opened.once('ready', resolve)
      opening = settlesWithin(promise, timeoutMs)
    }
    await opening
    if (!isCluster(opened)) return opened
    const [owner] = opened.slots[new Command('exists', [base]).getSlot()] ?? []
    const node = opened.nodes().find(({ options }) => keyOfNode(options) === owner)
    if (node !== undefined) return node
    opened.refreshSlotsCache()
    throw new Error('Connection is closed.')
  }

  async function enter(call: Call): Promise<void> {
    try {
      const node = await nodeOf(call.base)
      const gather = gatherers.get(node) ?? gathered((calls) => send(node, calls))
      gatherers.set(node, gather)
      gather(call)
    } catch (error) {
      call.reject(error)
    }
  }

  /** Sends everything before it awaits anything, so that all commands take the same connection. */
  async function send(node: Redis, calls: readonly Call[]): Promise<void> {
    const adding = calls.map((call) => node.evalsha(SHA, 1, ...argumentsOf(call)) as Promise<readonly AddReply[]>)
    // If an earlier call stored the task, the script writes nothing, and a server for which only writes count would wait for nothing.
    const touched = [...new Set(calls.map(({ base }) => base))].map((base) =>
      node.set(touchKey(base), '', 'PX', TOUCH_MS),
    )
    const waiting = Promise.all([node.wait(1, waitMs), ...touched])
    const confirming = withTimeout(waiting, waitMs + timeoutMs, timedOut).then(
      ([replicas]) => (replicas === 0 ? new Error(`none has confirmed it within ${waitMs} ms`) : undefined),
      (error: Error) => error,
    )
    const settle = async (call: Call, reply: Promise<readonly AddReply[]>): Promise<void> => {
      try {
        const replies = await withTimeout(reply, timeoutMs, timedOut)
        call.resolve({ replies, unconfirmed: await confirming })
      } catch (error) {
        if (call.isRepeat || !(await hasRepaired(node, error))) call.reject(error)
        else void enter({ ...call, isRepeat: true })
      }
    }
    await Promise.all([confirming, ...calls.map((call, i) => settle(call, adding[i] as Promise<readonly AddReply[]>))])
  }

  /** Returns whether the reason for which the server has not run the script is gone, so that the call can be sent again. */
  async function hasRepaired(node: Redis, error: unknown): Promise<boolean> {
    const text = error instanceof Error ? error.message : ''
    if (text.startsWith('NOSCRIPT')) {
      return withTimeout(node.script('LOAD', addScript.lua), timeoutMs, timedOut).then(
        () => true,
        () => false,
      )
    }
    if (!text.startsWith('MOVED') || opened === undefined || !isCluster(opened)) return false
    const { promise, resolve } = Promise.withResolvers<void>()
    opened.refreshSlotsCache(() => resolve())
    return settlesWithin(promise, timeoutMs)
  }

  return {
    send: (adds) => new Promise((resolve, reject) => void enter({ ...adds, isRepeat: false, resolve, reject })),
    close: () => opened?.disconnect(),
  }
}

/** Returns the error for a call whose task is stored, but perhaps on one server only. */
export function notReplicated(id: string, unconfirmed: Error): BullpenError {
  return new BullpenError(
    'not_replicated',
    `task '${id}' is stored and may run, but no replica of Redis is known to have it: ${unconfirmed.message}; ` +
      'a failover may lose it; send the call again with the same id or idempotency key, which stores nothing new and waits again',
    { taskId: id, cause: unconfirmed },
  )
}

/**
 * Returns a function that takes a call and returns at once. All calls that come while a batch is on its way form the next one. Unlike
 * `createBatcher`, it never has two on their way, because the WAIT of the second would begin only when that of the first has ended.
 */
function gathered<T>(send: (calls: readonly T[]) => Promise<void>): (call: T) => void {
  let waiting: T[] = []
  let isSending = false
  async function sendAll(): Promise<void> {
    while (waiting.length > 0) {
      const calls = waiting
      waiting = []
      await send(calls)
    }
    isSending = false
  }
  return (call) => {
    waiting.push(call)
    if (isSending) return
    isSending = true
    process.nextTick(() => void sendAll())
  }
}

function argumentsOf({ base, isAll, args, isRepeat }: Call): readonly string[] {
  return [`${base}wait`, base, isAll, `${args.length + 3}`, ...args, ...(isRepeat ? ['1'] : [])]
}

function touchKey(base: string): string {
  return `${base}replicated`
}
