// Runs a part of the benchmark in a separate process, so that its CPU time is its own, and asks that process for its figures.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import type { Done } from '../sustain/workload.ts'
import type { Load } from './meter.ts'

/** The questions that a part may be asked, with the type of each response. */
export interface Responses {
  /** The CPU time that the process has used since it started, in µs. */
  readonly cpu: number
  /** Discards everything that has been counted so far. */
  readonly begin: true
  /** What has been counted since `begin`. */
  readonly end: Load
  /** What a process of the benchmark `sustain` has done since it was last asked. */
  readonly take: Done
}
type Question = keyof Responses

export interface Part<Ready> {
  /** What the part has sent to report that it is ready. */
  readonly ready: Ready
  ask<Q extends Question>(question: Q): Promise<Responses[Q]>
  /** Resolves when the process has ended. */
  stop(): Promise<void>
}

/** How many of the last characters that a part has written to stderr an error shows. */
const MAX_SHOWN = 4_000

/**
 * Starts the program in this file with these options, and waits until it is ready. `execArgv` are options of Node. If the program ends
 * before it is stopped, this call or the next question rejects with its exit code and what it has written to stderr.
 */
export async function startPart<Ready>(
  program: string,
  options: object,
  execArgv: readonly string[] = [],
): Promise<Part<Ready>> {
  const child = fork(program, [JSON.stringify(options)], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    execArgv: [...execArgv],
  })
  const { stderr } = child
  if (stderr === null) throw new Error('stderr is not piped')
  let errors = ''
  stderr.on('data', (chunk: Buffer) => {
    process.stderr.write(chunk)
    errors = (errors + chunk).slice(-MAX_SHOWN)
  })
  const exited = once(child, 'exit') as Promise<[code: number | null, signal: string | null]>
  // Node does not emit the child's own 'close' if its channel was disconnected here.
  const ended = Promise.all([exited, once(stderr, 'close')]).then(([[code, signal]]) => signal ?? `exit code ${code}`)
  const nextMessage = async (): Promise<unknown> => {
    const failed = ended.then((how) => {
      throw new Error(`${basename(program)} ended before the benchmark did, with ${how}\n${errors}`.trimEnd())
    })
    const [message] = await Promise.race([once(child, 'message'), failed])
    return message
  }
  return {
    ready: (await nextMessage()) as Ready,
    async ask<Q extends Question>(question: Q) {
      const response = nextMessage()
      // If the process has ended, this fails as well, and `response` says why.
      child.send(question, () => {})
      return (await response) as Responses[Q]
    },
    async stop() {
      if (child.connected) child.disconnect()
      await ended
    },
  }
}

/** Reads the options in a part's process. */
export function partOptions<Options>(): Options {
  return JSON.parse(process.argv[2] ?? '') as Options
}

/**
 * Reports in a part's process that it is ready, and responds to every question from then on. The process ends when the benchmark
 * disconnects from it or dies.
 */
export function reportReady(ready: unknown, respond: { readonly [Q in Question]?: () => Responses[Q] }): void {
  process.on('message', (question: Question) => process.send?.(respond[question]?.()))
  process.once('disconnect', () => process.exit(0))
  process.send?.(ready)
}

/** Returns the CPU time that this process has used since it started, in µs. */
export function ownCpu(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}
