// The worker processes of a drill: started, killed without a word, or told to end, and all gone afterwards.

import { type ChildProcess, fork } from 'node:child_process'
import { openSync } from 'node:fs'
import type { WorkerConfig } from '@bullpen/config'
import type { Exit } from '../ledger/figures.ts'
import type { WorkerOrder } from './worker-main.ts'

export interface Member {
  readonly name: string
  /** Resolves with its unix time in ms when the signal has been sent. */
  kill(): Promise<number>
  /** SIGTERM, and SIGKILL after so long; resolves when the process has gone. */
  end(killAfterMs: number): Promise<Exit>
}

/** Whose workers: ours, or plain BullMQ's, which the figures stand beside. */
export type Side = 'bullpen' | 'bullmq'

export interface Machine {
  /** By how much its clock is ahead, in ms; negative: behind. */
  readonly clockOffMs?: number
}

export interface Fleet {
  /** Those that work; neither killed nor told to end. The longest there comes first. */
  readonly members: readonly Member[]
  /** One more process; resolves when it fetches tasks. */
  start(config?: WorkerConfig, machine?: Machine): Promise<Member>
  /** Kills what is left. */
  close(): Promise<void>
}

const SHIFTED_CLOCK = new URL('./shifted-clock.ts', import.meta.url).href
const PROGRAMS = { bullpen: './worker-main.ts', bullmq: './peer-main.ts' } as const

/** `log`: a file that takes what the processes print. */
export function makeFleet(given: {
  readonly ledger: string
  readonly log: string
  readonly side: Side
  readonly config: WorkerConfig
}): Fleet {
  const { ledger, side, config } = given
  const log = openSync(given.log, 'a')
  const program = new URL(PROGRAMS[side], import.meta.url)
  const children = new Map<ChildProcess, Promise<number | null>>()
  const members: Member[] = []
  let started = 0

  const leave = (member: Member): void => {
    const at = members.indexOf(member)
    if (at >= 0) members.splice(at, 1)
  }

  return {
    members,
    async start(own = {}, { clockOffMs } = {}) {
      const name = `w${++started}`
      const order: WorkerOrder = { name, ledger, config: { ...config, ...own } }
      const child = fork(program, [JSON.stringify(order)], {
        stdio: ['ignore', log, log, 'ipc'],
        execArgv: clockOffMs === undefined ? [] : ['--import', SHIFTED_CLOCK],
        env: { ...process.env, BULLPEN_DRILL_CLOCK_OFF_MS: String(clockOffMs ?? 0) },
      })
      const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
      children.set(child, exited)
      const member: Member = {
        name,
        async kill() {
          leave(member)
          const at = Date.now()
          child.kill('SIGKILL')
          await exited
          return at
        },
        async end(killAfterMs) {
          leave(member)
          const began = performance.now()
          child.kill('SIGTERM')
          const late = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
          const code = await exited
          clearTimeout(late)
          return { process: name, code, at: Date.now(), tookMs: Math.round(performance.now() - began) }
        },
      }
      const ready = new Promise((resolve) => child.once('message', resolve))
      const early = await Promise.race([ready.then(() => undefined), exited.then((code) => ({ code }))])
      if (early !== undefined) throw new Error(`worker ${name} ended before it was ready, with ${early.code}`)
      members.push(member)
      return member
    },
    async close() {
      for (const child of children.keys()) child.kill('SIGKILL')
      await Promise.all(children.values())
    },
  }
}
